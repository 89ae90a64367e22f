#include "ort/low_precision_op.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "low_precision/plan.h"
#include "low_precision/program.h"
#include "low_precision/run.h"

namespace cutout::ort {

namespace {

thread_local const CancelToken* running = nullptr;

[[noreturn]] void raise(const Status& status) { throw Ort::Exception(status.message(), ORT_FAIL); }

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

template <typename T>
std::span<const T> constant(const Ort::ConstKernelInfo& info, std::size_t index) {
  int is_constant = 0;
  const Ort::ConstValue value = info.GetTensorConstantInput(index, &is_constant);
  if (is_constant == 0) raise({Code::kModel, "An input of the operator is not a constant."});
  return {value.GetTensorData<T>(), value.GetTensorTypeAndShapeInfo().GetElementCount()};
}

const Ort::MemoryInfo& cpu_memory() {
  static const Ort::MemoryInfo info =
      Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  return info;
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

  std::unique_ptr<OrtAllocator, Release> allocator_;
  std::uint8_t* memory_;
  std::size_t bytes_;
};

void call_part(void* work, std::size_t part) {
  (*static_cast<const std::function<void(std::size_t)>*>(work))(part);
}

}  // namespace

RunToken::RunToken(const CancelToken& token) { running = &token; }
RunToken::~RunToken() { running = nullptr; }
const CancelToken* RunToken::current() { return running; }

namespace {

/// One node of one session.
struct LowPrecisionKernel {
  LowPrecisionKernel(const OrtKernelInfo* from, low_precision::Kernel conv_kernel)
      : kernel(conv_kernel) {
    const Ort::ConstKernelInfo info(from);
    const Status status = low_precision::Program::read(
        constant<std::int64_t>(info, 1), constant<float>(info, 2), constant<std::int32_t>(info, 3),
        constant<std::int8_t>(info, 4), program);
    if (!status.ok()) raise(status);
    if (program.bf16() != conv_kernel.bf16) {
      raise({Code::kModel, "The steps are not for the operator that they were given to."});
    }
    if (info.GetOutputCount() != static_cast<std::size_t>(program.outputs())) {
      raise({Code::kModel, "The operator has another number of outputs than its program."});
    }
  }

  OrtStatusPtr ComputeV2(OrtKernelContext* context) {
    return as_status([&] { compute(Ort::KernelContext(context)); });
  }

  void compute(const Ort::KernelContext& context) {
    const Ort::ConstValue input = context.GetInput(0);
    const std::vector<std::int64_t> shape = input.GetTensorTypeAndShapeInfo().GetShape();
    if (shape.size() != 4 || shape[1] != program.input_channels() || shape[2] < 1 || shape[3] < 1 ||
        shape[2] > INT32_MAX || shape[3] > INT32_MAX) {
      raise({Code::kModel, "The operator has an input of another shape than its program."});
    }
    const std::shared_ptr<const low_precision::Plan> plan =
        plan_for(static_cast<int>(shape[3]), static_cast<int>(shape[2]));
    const auto pixels = static_cast<std::size_t>(shape[1] * shape[2] * shape[3]);
    std::vector<std::pair<float*, std::size_t>> outputs(
        static_cast<std::size_t>(program.outputs()));
    for (const low_precision::Operation& operation : program.operations()) {
      if (!operation.outward()) continue;
      const low_precision::Map map = plan->map(operation.inputs.front(), nullptr);
      const int channels = operation.output_channels(map.channels);
      const std::array<std::int64_t, 4> given{shape[0], channels, map.height, map.width};
      const auto number = static_cast<std::size_t>(operation.output);
      outputs[number] = {
          context.GetOutput(number, given.data(), given.size()).GetTensorMutableData<float>(),
          static_cast<std::size_t>(channels) * static_cast<std::size_t>(map.height) *
              static_cast<std::size_t>(map.width)};
    }
    const RunMemory memory(context, low_precision::bytes_of_run(program, *plan, kernel));
    const low_precision::Parallel parallel =
        [&context](std::size_t count, const std::function<void(std::size_t)>& work) {
          context.ParallelFor(&call_part, count, count,
                              const_cast<void*>(static_cast<const void*>(&work)));
        };
    for (std::int64_t image = 0; image < shape[0]; ++image) {
      const auto at = static_cast<std::size_t>(image);
      low_precision::RunBuffers buffers{
          {input.GetTensorData<float>() + at * pixels, pixels}, {}, memory.bytes()};
      for (const auto& [values, count] : outputs) {
        buffers.outputs.emplace_back(values + at * count, count);
      }
      const Status status =
          low_precision::run(program, *plan, kernel, buffers, parallel, RunToken::current());
      if (!status.ok()) raise(status);
    }
  }

  /// Runs of one size follow each other; another size makes a new plan, at the cost of a
  /// millisecond.
  std::shared_ptr<const low_precision::Plan> plan_for(int width, int height) {
    const std::lock_guard lock(mutex);
    if (planned == nullptr || planned_width != width || planned_height != height) {
      auto made = std::make_shared<low_precision::Plan>();
      const Status status = low_precision::Plan::make(program, width, height, *made);
      if (!status.ok()) raise(status);
      planned = std::move(made);
      planned_width = width;
      planned_height = height;
    }
    return planned;
  }

  low_precision::Program program;
  low_precision::Kernel kernel;
  std::mutex mutex;
  std::shared_ptr<const low_precision::Plan> planned;  // guarded by mutex, as its size
  int planned_width = 0;
  int planned_height = 0;
};

class LowPrecisionNetwork
    : public Ort::CustomOpBase<LowPrecisionNetwork, LowPrecisionKernel, true> {
 public:
  explicit LowPrecisionNetwork(low_precision::Kernel kernel) : kernel_(kernel) {}

  // ONNX Runtime's names.
  OrtStatusPtr CreateKernelV2(const OrtApi& /*api*/, const OrtKernelInfo* info, void** made) const {
    return as_status(
        [&] { *made = std::make_unique<LowPrecisionKernel>(info, kernel_).release(); });
  }
  [[nodiscard]] const char* GetName() const {
    return kernel_.bf16 ? "Bf16Network" : "IntegerNetwork";
  }
  [[nodiscard]] const char* GetExecutionProviderType() const { return "CPUExecutionProvider"; }
  [[nodiscard]] std::size_t GetInputTypeCount() const { return kInputTypes.size(); }
  [[nodiscard]] ONNXTensorElementDataType GetInputType(std::size_t index) const {
    return kInputTypes[index];
  }
  [[nodiscard]] std::size_t GetOutputTypeCount() const { return 1; }
  [[nodiscard]] ONNXTensorElementDataType GetOutputType(std::size_t /*index*/) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  [[nodiscard]] OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(
      std::size_t /*index*/) const {
    return INPUT_OUTPUT_VARIADIC;
  }

 private:
  static constexpr std::array kInputTypes{
      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
      ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8};

  low_precision::Kernel kernel_;
};

}  // namespace

struct LowPrecisionDomain::Operator {
  explicit Operator(low_precision::Kernel kernel) : network(kernel) {}
  LowPrecisionNetwork network;
};

LowPrecisionDomain::LowPrecisionDomain(low_precision::Kernel kernel)
    : operator_(std::make_unique<Operator>(kernel)), domain_("cutout") {
  domain_.Add(&operator_->network);
}

LowPrecisionDomain::~LowPrecisionDomain() = default;

void LowPrecisionDomain::add_to(Ort::SessionOptions& options) const { options.Add(domain_); }

}  // namespace cutout::ort
