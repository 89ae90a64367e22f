#include "ort/custom_operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "low_precision/attention.h"
#include "low_precision/convolution.h"
#include "low_precision/kernels.h"
#include "low_precision/matmul.h"
#include "low_precision/run.h"
#include "ort/tensor_network.h"

namespace cutout::ort {

namespace {

thread_local const CancelToken* running = nullptr;

void require(const Status& status) {
  if (!status.ok()) throw Ort::Exception(status.message(), ORT_FAIL);
}

void require(bool met, const char* otherwise) {
  if (!met) throw Ort::Exception(otherwise, ORT_FAIL);
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
  require(is_constant != 0, "An input of the operator is not a constant.");
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
low_precision::Parallel parallel_of(const Ort::KernelContext& context) {
  constexpr auto kCallPart = [](void* work, std::size_t part) {
    (*static_cast<const std::function<void(std::size_t)>*>(work))(part);
  };
  return [&context, kCallPart](std::size_t count, const std::function<void(std::size_t)>& work) {
    context.ParallelFor(+kCallPart, count, count,
                        const_cast<void*>(static_cast<const void*>(&work)));
  };
}

std::vector<std::int64_t> shape_of(const Ort::ConstValue& value) {
  return value.GetTensorTypeAndShapeInfo().GetShape();
}

constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr auto kInt8 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
constexpr auto kInt32 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
constexpr auto kInt64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;

/// One node of one session: a program of convolutions.
class ProgramNode {
 public:
  static const char* name(const low_precision::Kernel& kernel) {
    return kernel.bf16 ? "Bf16Network" : "IntegerNetwork";
  }
  static constexpr std::array kInputTypes{kFloat, kInt64, kFloat, kInt32, kInt8};

  ProgramNode(const Ort::ConstKernelInfo& info, const low_precision::Kernel& kernel)
      : kernel_(kernel) {
    require(low_precision::Program::read(constant<std::int64_t>(info, 1), constant<float>(info, 2),
                                         constant<std::int32_t>(info, 3),
                                         constant<std::int8_t>(info, 4), program_));
    require(program_.bf16() == kernel.bf16,
            "The steps are not for the operator that they were given to.");
    require(info.GetOutputCount() == static_cast<std::size_t>(program_.outputs()),
            "The operator has another number of outputs than its program.");
  }

  void compute(const Ort::KernelContext& context) {
    const Ort::ConstValue input = context.GetInput(0);
    const std::vector<std::int64_t> shape = shape_of(input);
    require(shape.size() == 4 && shape[1] == program_.input_channels() && shape[2] >= 1 &&
                shape[3] >= 1 && shape[2] <= INT32_MAX && shape[3] <= INT32_MAX,
            "The operator has an input of another shape than its program.");
    const std::shared_ptr<const low_precision::Plan> plan =
        plan_for(static_cast<int>(shape[3]), static_cast<int>(shape[2]));
    const auto pixels = static_cast<std::size_t>(shape[1] * shape[2] * shape[3]);
    std::vector<std::pair<float*, std::size_t>> outputs(
        static_cast<std::size_t>(program_.outputs()));
    for (const low_precision::Operation& operation : program_.operations()) {
      if (!operation.outward()) continue;
      const low_precision::Map map = plan->map(operation.inputs.front(), nullptr);
      const int channels = operation.output_channels(map.channels);
      const Shape given{shape[0], channels, map.height, map.width};
      const auto number = static_cast<std::size_t>(operation.output);
      outputs[number] = {
          context.GetOutput(number, given.data(), given.size()).GetTensorMutableData<float>(),
          elements({channels, map.height, map.width})};
    }
    const RunMemory memory(context, low_precision::bytes_of_run(program_, *plan, kernel_));
    const low_precision::Parallel parallel = parallel_of(context);
    for (std::int64_t image = 0; image < shape[0]; ++image) {
      const auto at = static_cast<std::size_t>(image);
      low_precision::RunBuffers buffers{
          {input.GetTensorData<float>() + at * pixels, pixels}, {}, memory.bytes()};
      for (const auto& [values, count] : outputs) {
        buffers.outputs.emplace_back(values + at * count, count);
      }
      require(low_precision::run(program_, *plan, kernel_, buffers, parallel, running));
    }
  }

 private:
  /// Runs of one size follow each other; another size makes a new plan, at the cost of a
  /// millisecond.
  std::shared_ptr<const low_precision::Plan> plan_for(int width, int height) {
    const std::lock_guard lock(mutex_);
    if (planned_ == nullptr || planned_width_ != width || planned_height_ != height) {
      auto made = std::make_shared<low_precision::Plan>();
      require(low_precision::Plan::make(program_, width, height, *made));
      planned_ = std::move(made);
      planned_width_ = width;
      planned_height_ = height;
    }
    return planned_;
  }

  low_precision::Kernel kernel_;
  low_precision::Program program_;
  std::mutex mutex_;
  std::shared_ptr<const low_precision::Plan> planned_;  // guarded by mutex_, as its size
  int planned_width_ = 0;
  int planned_height_ = 0;
};

class ProductNode {
 public:
  static const char* name(const low_precision::Kernel& kernel) {
    return kernel.bf16 ? "Bf16Product" : "Int8Product";
  }
  static constexpr std::array kInputTypes{kFloat, kInt8, kFloat};
  ProductNode(const Ort::ConstKernelInfo& info, const low_precision::Kernel& kernel)
      : kernel_(kernel) {
    const std::vector<std::int64_t> columns = info.GetAttributes<std::int64_t>("columns");
    require(low_precision::MatMul::make(kernel.bf16, info.GetAttribute<std::int64_t>("inputs"),
                                        columns, info.GetAttribute<std::int64_t>("gelu") != 0,
                                        constant<float>(info, 2), constant<std::int8_t>(info, 1),
                                        matmul_));
    require(info.GetOutputCount() == columns.size(),
            "The operator has another number of outputs than of matrices.");
  }

  void compute(const Ort::KernelContext& context) const {
    const Ort::ConstValue input = context.GetInput(0);
    std::vector<std::int64_t> shape = shape_of(input);
    require(!shape.empty() && shape.back() == matmul_.inputs(),
            "The operator has rows of another length than its matrices.");
    shape.pop_back();
    const std::size_t rows = elements(shape);
    shape.emplace_back();
    std::vector<float*> outputs;
    for (const low_precision::Matrix& matrix : matmul_.matrices()) {
      shape.back() = matrix.columns();
      outputs.push_back(context.GetOutput(outputs.size(), shape.data(), shape.size())
                            .GetTensorMutableData<float>());
    }
    if (rows == 0) return;
    const RunMemory memory(context, matmul_.bytes_of_run(rows));
    require(matmul_.run(
        kernel_.run,
        {input.GetTensorData<float>(), rows * static_cast<std::size_t>(matmul_.inputs())}, rows,
        outputs, memory.bytes(), parallel_of(context), running));
  }

 private:
  low_precision::Kernel kernel_;
  low_precision::MatMul matmul_;
};

class AttentionNode {
 public:
  static const char* name(const low_precision::Kernel& /*kernel*/) { return "Bf16Attention"; }
  static constexpr std::array kInputTypes{kFloat, kFloat, kFloat};
  AttentionNode(const Ort::ConstKernelInfo& info, const low_precision::Kernel& kernel)
      : kernel_(kernel),
        heads_(info.GetAttribute<std::int64_t>("heads")),
        scale_(info.GetAttribute<float>("scale")) {
    require(heads_ >= 1, "An attention in bf16 of the network has no heads.");
  }

  void compute(const Ort::KernelContext& context) const {
    const std::array<Ort::ConstValue, 3> inputs{context.GetInput(0), context.GetInput(1),
                                                context.GetInput(2)};
    const low_precision::Attention attention = described(inputs);
    const Shape shape{static_cast<std::int64_t>(attention.batch), attention.queries,
                      std::int64_t{attention.heads} * attention.value_channels};
    float* const output =
        context.GetOutput(0, shape.data(), shape.size()).GetTensorMutableData<float>();
    if (attention.batch == 0) return;
    const RunMemory memory(context, attention.bytes_of_run());
    require(attention.run(kernel_.run,
                          {inputs[0].GetTensorData<float>(), inputs[1].GetTensorData<float>(),
                           inputs[2].GetTensorData<float>()},
                          output, memory.bytes(), parallel_of(context), running));
  }

 private:
  [[nodiscard]] low_precision::Attention described(
      const std::array<Ort::ConstValue, 3>& inputs) const {
    const auto queries = shape_of(inputs[0]);
    const auto keys = shape_of(inputs[1]);
    const auto values = shape_of(inputs[2]);
    const auto fits_int = [](std::int64_t side) { return side >= 0 && side <= INT32_MAX; };
    require(queries.size() == 3 && keys.size() == 3 && values.size() == 3 &&
                queries[0] == keys[0] && keys[0] == values[0] && queries[2] == keys[2] &&
                keys[1] == values[1] && queries[2] % heads_ == 0 && values[2] % heads_ == 0 &&
                std::ranges::all_of(queries, fits_int) && std::ranges::all_of(values, fits_int),
            "An attention in bf16 of the network has inputs of other shapes.");
    low_precision::Attention attention{static_cast<std::size_t>(queries[0]),
                                       static_cast<int>(queries[1]),
                                       static_cast<int>(keys[1]),
                                       static_cast<int>(heads_),
                                       static_cast<int>(queries[2] / heads_),
                                       static_cast<int>(values[2] / heads_),
                                       scale_};
    if (attention.scale == 0) {
      attention.scale = 1 / std::sqrt(static_cast<float>(attention.channels));
    }
    require(attention.check());
    return attention;
  }

  low_precision::Kernel kernel_;
  std::int64_t heads_;
  float scale_;
};

/// One convolution, whose last two inputs are offsets and masks where it is deformable.
template <bool kDeformable>
class ConvolutionNode {
 public:
  static const char* name(const low_precision::Kernel& kernel) {
    if (kernel.bf16) return kDeformable ? "Bf16DeformConv" : "Bf16Conv";
    return kDeformable ? "Int8DeformConv" : "Int8Conv";
  }
  static constexpr auto kInputTypes = [] {
    if constexpr (kDeformable)
      return std::array{kFloat, kInt8, kFloat, kFloat, kFloat};
    else
      return std::array{kFloat, kInt8, kFloat};
  }();

  ConvolutionNode(const Ort::ConstKernelInfo& info, const low_precision::Kernel& kernel)
      : kernel_(kernel) {
    const auto number = [&info](const char* name) { return info.GetAttribute<std::int64_t>(name); };
    const auto list = [&info](const char* name, auto& to) {
      const std::vector<std::int64_t> given = info.GetAttributes<std::int64_t>(name);
      require(given.size() == to.size(), "A convolution has lists of another length.");
      std::ranges::copy(given, to.begin());
    };
    low_precision::Convolution::Geometry geometry{number("channels"), number("outputs")};
    list("kernel", geometry.kernel);
    geometry.stride = number("stride");
    geometry.dilation = number("dilation");
    list("pads", geometry.pads);
    geometry.relu = number("relu") != 0;
    geometry.deformable = kDeformable;
    require(low_precision::Convolution::make(kernel.bf16, geometry, constant<float>(info, 2),
                                             constant<std::int8_t>(info, 1), convolution_));
    require(info.GetOutputCount() == 1, "A convolution has one output.");
  }

  void compute(const Ort::KernelContext& context) const {
    const auto& geometry = convolution_.geometry();
    const Ort::ConstValue input = context.GetInput(0);
    const std::vector<std::int64_t> shape = shape_of(input);
    require(shape.size() == 4 && shape[1] == geometry.channels && shape[2] >= 1 && shape[3] >= 1 &&
                shape[2] <= kMaxSide && shape[3] <= kMaxSide,
            "A convolution has an input of another shape than its weights.");
    const auto [height, width] = geometry.output_size(shape[2], shape[3]);
    require(height >= 1 && width >= 1, "A convolution has an input that is too small.");
    const Shape made{shape[0], geometry.outputs, height, width};
    float* const output =
        context.GetOutput(0, made.data(), made.size()).GetTensorMutableData<float>();
    const std::int64_t taps = geometry.kernel[0] * geometry.kernel[1];
    std::array<const float*, 2> moves{};
    for (std::size_t i = 0; kDeformable && i < moves.size(); ++i) {
      const Ort::ConstValue given = context.GetInput(3 + i);
      require(shape_of(given) == std::vector{shape[0], i == 0 ? 2 * taps : taps, height, width},
              "A convolution has offsets or masks of another shape than its output.");
      moves[i] = given.GetTensorData<float>();
    }
    const RunMemory memory(context, convolution_.bytes_of_run(shape[2], shape[3]));
    const std::size_t area = elements({height, width});
    for (std::size_t image = 0; image < static_cast<std::size_t>(shape[0]); ++image) {
      const auto of = [image](auto* planes, std::int64_t count, std::size_t size) {
        return planes == nullptr ? nullptr
                                 : planes + image * static_cast<std::size_t>(count) * size;
      };
      require(convolution_.run(
          kernel_.run,
          {of(input.GetTensorData<float>(), shape[1], elements({shape[2], shape[3]})),
           of(moves[0], 2 * taps, area), of(moves[1], taps, area),
           of(output, geometry.outputs, area), static_cast<int>(shape[2]),
           static_cast<int>(shape[3])},
          memory.bytes(), parallel_of(context), running));
    }
  }

 private:
  /// The largest height and width of planes.
  static constexpr std::int64_t kMaxSide = 1 << 15;

  low_precision::Kernel kernel_;
  low_precision::Convolution convolution_;
};

/// What ONNX Runtime calls for a node that a `Node` computes.
template <typename Node>
struct NodeKernel {
  NodeKernel(const OrtKernelInfo* info, const low_precision::Kernel& kernel)
      : node(Ort::ConstKernelInfo(info), kernel) {}
  OrtStatusPtr ComputeV2(OrtKernelContext* context) {
    return as_status([&] { node.compute(Ort::KernelContext(context)); });
  }
  Node node;
};

/// An operator of the domain `cutout`, by ONNX Runtime's names.
template <typename Node>
class Operator : public Ort::CustomOpBase<Operator<Node>, NodeKernel<Node>, true> {
 public:
  explicit Operator(low_precision::Kernel kernel) : kernel_(kernel) {}

  OrtStatusPtr CreateKernelV2(const OrtApi& /*api*/, const OrtKernelInfo* info, void** made) const {
    return as_status([&] { *made = std::make_unique<NodeKernel<Node>>(info, kernel_).release(); });
  }
  [[nodiscard]] const char* GetName() const { return Node::name(kernel_); }
  [[nodiscard]] const char* GetExecutionProviderType() const { return "CPUExecutionProvider"; }
  [[nodiscard]] std::size_t GetInputTypeCount() const { return Node::kInputTypes.size(); }
  [[nodiscard]] ONNXTensorElementDataType GetInputType(std::size_t index) const {
    return Node::kInputTypes[index];
  }
  [[nodiscard]] std::size_t GetOutputTypeCount() const { return 1; }
  [[nodiscard]] ONNXTensorElementDataType GetOutputType(std::size_t /*index*/) const {
    return kFloat;
  }
  [[nodiscard]] OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(
      std::size_t /*index*/) const {
    return INPUT_OUTPUT_VARIADIC;
  }

 private:
  low_precision::Kernel kernel_;
};

/// The operators for one kernel and their domain.
struct Operators {
  explicit Operators(low_precision::Kernel kernel)
      : network(kernel),
        product(kernel),
        attention(kernel),
        convolution(kernel),
        deformable(kernel) {
    domain.Add(&network);
    domain.Add(&product);
    domain.Add(&convolution);
    domain.Add(&deformable);
    if (kernel.bf16) domain.Add(&attention);
  }

  Operator<ProgramNode> network;
  Operator<ProductNode> product;
  Operator<AttentionNode> attention;
  Operator<ConvolutionNode<false>> convolution;
  Operator<ConvolutionNode<true>> deformable;
  Ort::CustomOpDomain domain{"cutout"};
};

}  // namespace

RunToken::RunToken(const CancelToken& token) { running = &token; }

RunToken::~RunToken() { running = nullptr; }

Status add_operators(const std::string& instruction_set, Ort::SessionOptions& options,
                     std::shared_ptr<void>& operators) {
  if (instruction_set.empty()) return {};
  // A kernel's instructions would end the process on a processor without them.
  const auto has = [&instruction_set](const std::vector<std::string>& known) {
    return std::ranges::find(known, instruction_set) != known.end();
  };
  if (!has(low_precision::kernels().int8) && !has(low_precision::kernels().bf16)) {
    return {Code::kRuntime, "There are no operators for the instruction set '" + instruction_set +
                                "' on this processor."};
  }
  const auto made = std::make_shared<Operators>(low_precision::kernel_for(instruction_set));
  options.Add(made->domain);
  operators = made;
  return {};
}

}  // namespace cutout::ort
