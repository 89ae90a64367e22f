#pragma once

#include <onnxruntime_cxx_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "core/status.h"
#include "low_precision/plan.h"
#include "low_precision/run.h"

/// For native/ort only: what the operators of the domain `cutout` have in common.
namespace cutout::ort {

[[noreturn]] inline void raise(const Status& status) {
  throw Ort::Exception(status.message(), ORT_FAIL);
}

/// No exception crosses the C interface.
template <typename Body>
OrtStatusPtr as_status(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return nullptr;
  } catch (const Ort::Exception& error) {
    return Ort::GetApi().CreateStatus(error.GetOrtErrorCode(), error.what());
  } catch (const std::bad_alloc&) {
    return Ort::GetApi().CreateStatus(ORT_FAIL, "bad allocation");
  } catch (const std::exception& error) {
    return Ort::GetApi().CreateStatus(ORT_FAIL, error.what());
  }
}

/// A constant input, which lives as long as the session.
template <typename T>
std::span<const T> constant(const Ort::ConstKernelInfo& info, std::size_t index) {
  int is_constant = 0;
  const Ort::ConstValue value = info.GetTensorConstantInput(index, &is_constant);
  if (is_constant == 0) raise({Code::kModel, "An input of the operator is not a constant."});
  return {value.GetTensorData<T>(), value.GetTensorTypeAndShapeInfo().GetElementCount()};
}

/// Memory of a run from the session's allocator.
class RunMemory {
 public:
  RunMemory(const Ort::KernelContext& context, std::size_t bytes)
      : allocator_(context.GetAllocator(*cpu_memory())),
        memory_(static_cast<std::uint8_t*>(
            allocator_->Alloc(allocator_.get(), bytes + low_precision::Plan::kAlignment))),
        bytes_(bytes) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  ~RunMemory() { allocator_->Free(allocator_.get(), memory_); }
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  [[nodiscard]] std::span<std::uint8_t> bytes() const {
    void* at = memory_;
    std::size_t space = bytes_ + low_precision::Plan::kAlignment;
    return {
        static_cast<std::uint8_t*>(std::align(low_precision::Plan::kAlignment, bytes_, at, space)),
        bytes_};
  }

 private:
  struct Release {
    void operator()(OrtAllocator* allocator) const { Ort::GetApi().ReleaseAllocator(allocator); }
  };

  static const Ort::MemoryInfo& cpu_memory() {
    static const Ort::MemoryInfo info =
        Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    return info;
  }

  std::unique_ptr<OrtAllocator, Release> allocator_;
  std::uint8_t* memory_;
  std::size_t bytes_;
};

/// The threads of the session; borrows the context.
inline low_precision::Parallel parallel_of(const Ort::KernelContext& context) {
  constexpr auto kCallPart = [](void* work, std::size_t part) {
    (*static_cast<const std::function<void(std::size_t)>*>(work))(part);
  };
  return [&context, kCallPart](std::size_t count, const std::function<void(std::size_t)>& work) {
    context.ParallelFor(+kCallPart, count, count,
                        const_cast<void*>(static_cast<const void*>(&work)));
  };
}

/// An operator of the domain `cutout` whose kernel is a `Kernel`; `Op` has GetName().
template <typename Op, typename Kernel>
class CutoutOp : public Ort::CustomOpBase<Op, Kernel, true> {
 public:
  explicit CutoutOp(low_precision::Kernel kernel) : kernel_(kernel) {}

  // ONNX Runtime's names.
  OrtStatusPtr CreateKernelV2(const OrtApi& /*api*/, const OrtKernelInfo* info, void** made) const {
    return as_status([&] { *made = std::make_unique<Kernel>(info, kernel_).release(); });
  }
  [[nodiscard]] const char* GetExecutionProviderType() const { return "CPUExecutionProvider"; }
  [[nodiscard]] std::size_t GetInputTypeCount() const { return Op::kInputTypes.size(); }
  [[nodiscard]] ONNXTensorElementDataType GetInputType(std::size_t index) const {
    return Op::kInputTypes[index];
  }
  [[nodiscard]] std::size_t GetOutputTypeCount() const { return 1; }
  [[nodiscard]] ONNXTensorElementDataType GetOutputType(std::size_t /*index*/) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  [[nodiscard]] OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(
      std::size_t /*index*/) const {
    return INPUT_OUTPUT_VARIADIC;
  }

 protected:
  low_precision::Kernel kernel_;
};

}  // namespace cutout::ort
