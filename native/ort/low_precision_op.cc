#include "ort/low_precision_op.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "low_precision/plan.h"
#include "low_precision/program.h"
#include "low_precision/run.h"
#include "ort/custom_op.h"
#include "ort/matmul_ops.h"

namespace cutout::ort {

namespace {

thread_local const CancelToken* running = nullptr;

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
    const low_precision::Parallel parallel = parallel_of(context);
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

class LowPrecisionNetwork : public CutoutOp<LowPrecisionNetwork, LowPrecisionKernel> {
 public:
  using CutoutOp::CutoutOp;
  [[nodiscard]] const char* GetName() const {
    return kernel_.bf16 ? "Bf16Network" : "IntegerNetwork";
  }
  static constexpr std::array kInputTypes{
      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
      ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8};
};

}  // namespace

struct LowPrecisionDomain::Operator {
  explicit Operator(low_precision::Kernel kernel) : network(kernel) {
    if (kernel.bf16) products.emplace(kernel);
  }
  LowPrecisionNetwork network;
  std::optional<MatMulOperators> products;
};

LowPrecisionDomain::LowPrecisionDomain(low_precision::Kernel kernel)
    : operator_(std::make_unique<Operator>(kernel)), domain_("cutout") {
  domain_.Add(&operator_->network);
  if (operator_->products) operator_->products->add_to(domain_);
}

LowPrecisionDomain::~LowPrecisionDomain() = default;

void LowPrecisionDomain::add_to(Ort::SessionOptions& options) const { options.Add(domain_); }

Status add_operators(const std::string& instruction_set, Ort::SessionOptions& options,
                     std::optional<LowPrecisionDomain>& domain) {
  if (instruction_set.empty()) return {};
  // A kernel's instructions would end the process on a processor without them.
  const auto has = [&instruction_set](const std::vector<std::string>& known) {
    return std::ranges::find(known, instruction_set) != known.end();
  };
  if (!has(low_precision::kernels().int8) && !has(low_precision::kernels().bf16)) {
    return {Code::kRuntime, "There are no operators for the instruction set '" + instruction_set +
                                "' on this processor."};
  }
  domain.emplace(low_precision::kernel_for(instruction_set));
  domain->add_to(options);
  return {};
}

}  // namespace cutout::ort
