#include "ort/matmul_ops.h"

#include <array>
#include <cmath>
#include <vector>

#include "low_precision/attention.h"
#include "low_precision/matmul.h"
#include "ort/custom_op.h"
#include "ort/low_precision_op.h"

namespace cutout::ort {

namespace {

std::vector<std::int64_t> shape_of(const Ort::ConstValue& value) {
  return value.GetTensorTypeAndShapeInfo().GetShape();
}

std::size_t product_of(std::span<const std::int64_t> sides) {
  std::size_t product = 1;
  for (const std::int64_t side : sides) product *= static_cast<std::size_t>(side);
  return product;
}

struct MatMulKernel {
  MatMulKernel(const OrtKernelInfo* from, low_precision::Kernel conv_kernel) : kernel(conv_kernel) {
    const Ort::ConstKernelInfo info(from);
    const std::vector<std::int64_t> columns = info.GetAttributes<std::int64_t>("columns");
    const Status status = low_precision::MatMul::make(
        info.GetAttribute<std::int64_t>("inputs"), columns,
        info.GetAttribute<std::int64_t>("gelu") != 0, constant<float>(info, 2),
        constant<std::int8_t>(info, 1), matmul);
    if (!status.ok()) raise(status);
    if (info.GetOutputCount() != columns.size()) {
      raise({Code::kModel, "The operator has another number of outputs than of matrices."});
    }
  }

  OrtStatusPtr ComputeV2(OrtKernelContext* context) {
    return as_status([&] { compute(Ort::KernelContext(context)); });
  }

  void compute(const Ort::KernelContext& context) const {
    const Ort::ConstValue input = context.GetInput(0);
    std::vector<std::int64_t> shape = shape_of(input);
    if (shape.empty() || shape.back() != matmul.inputs()) {
      raise({Code::kModel, "The operator has rows of another length than its matrices."});
    }
    const std::size_t rows = product_of(std::span(shape).first(shape.size() - 1));
    std::vector<float*> outputs;
    for (const int columns : matmul.columns()) {
      shape.back() = columns;
      outputs.push_back(context.GetOutput(outputs.size(), shape.data(), shape.size())
                            .GetTensorMutableData<float>());
    }
    if (rows == 0) return;
    const RunMemory memory(context, matmul.bytes_of_run(rows));
    const Status status =
        matmul.run(kernel.run,
                   {input.GetTensorData<float>(), rows * static_cast<std::size_t>(matmul.inputs())},
                   rows, outputs, memory.bytes(), parallel_of(context), RunToken::current());
    if (!status.ok()) raise(status);
  }

  low_precision::MatMul matmul;
  low_precision::Kernel kernel;
};

struct AttentionKernel {
  AttentionKernel(const OrtKernelInfo* from, low_precision::Kernel conv_kernel)
      : kernel(conv_kernel) {
    const Ort::ConstKernelInfo info(from);
    heads = info.GetAttribute<std::int64_t>("heads");
    scale = info.GetAttribute<float>("scale");
    if (heads < 1) raise({Code::kModel, "An attention in bf16 of the network has no heads."});
  }

  OrtStatusPtr ComputeV2(OrtKernelContext* context) {
    return as_status([&] { compute(Ort::KernelContext(context)); });
  }

  void compute(const Ort::KernelContext& context) const {
    const std::array<Ort::ConstValue, 3> inputs{context.GetInput(0), context.GetInput(1),
                                                context.GetInput(2)};
    const low_precision::Attention attention = described(inputs);
    const auto width = std::int64_t{attention.heads} * attention.value_channels;
    const std::array<std::int64_t, 3> shape{static_cast<std::int64_t>(attention.batch),
                                            attention.queries, width};
    float* const output =
        context.GetOutput(0, shape.data(), shape.size()).GetTensorMutableData<float>();
    if (attention.batch == 0) return;
    const RunMemory memory(context, attention.bytes_of_run());
    const Status status =
        attention.run(kernel.run,
                      {inputs[0].GetTensorData<float>(), inputs[1].GetTensorData<float>(),
                       inputs[2].GetTensorData<float>()},
                      output, memory.bytes(), parallel_of(context), RunToken::current());
    if (!status.ok()) raise(status);
  }

  [[nodiscard]] low_precision::Attention described(
      const std::array<Ort::ConstValue, 3>& inputs) const {
    const auto queries = shape_of(inputs[0]);
    const auto keys = shape_of(inputs[1]);
    const auto values = shape_of(inputs[2]);
    const bool fit = queries.size() == 3 && keys.size() == 3 && values.size() == 3 &&
                     queries[0] == keys[0] && keys[0] == values[0] && queries[2] == keys[2] &&
                     keys[1] == values[1] && queries[2] % heads == 0 && values[2] % heads == 0 &&
                     std::ranges::all_of(queries, fits_int) &&
                     std::ranges::all_of(values, fits_int);
    if (!fit) {
      raise({Code::kModel, "An attention in bf16 of the network has inputs of other shapes."});
    }
    low_precision::Attention attention{static_cast<std::size_t>(queries[0]),
                                       static_cast<int>(queries[1]),
                                       static_cast<int>(keys[1]),
                                       static_cast<int>(heads),
                                       static_cast<int>(queries[2] / heads),
                                       static_cast<int>(values[2] / heads),
                                       scale};
    if (attention.scale == 0) {
      attention.scale = 1 / std::sqrt(static_cast<float>(attention.channels));
    }
    const Status status = attention.check();
    if (!status.ok()) raise(status);
    return attention;
  }

  static bool fits_int(std::int64_t side) { return side >= 0 && side <= INT32_MAX; }

  std::int64_t heads = 1;
  float scale = 0;
  low_precision::Kernel kernel;
};

class MatMulOp : public CutoutOp<MatMulOp, MatMulKernel> {
 public:
  using CutoutOp::CutoutOp;
  [[nodiscard]] const char* GetName() const { return "Bf16Product"; }
  static constexpr std::array kInputTypes{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT};
};

class AttentionOp : public CutoutOp<AttentionOp, AttentionKernel> {
 public:
  using CutoutOp::CutoutOp;
  [[nodiscard]] const char* GetName() const { return "Bf16Attention"; }
  static constexpr std::array kInputTypes{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT};
};

}  // namespace

struct MatMulOperators::Operators {
  explicit Operators(low_precision::Kernel kernel) : matmul(kernel), attention(kernel) {}
  MatMulOp matmul;
  AttentionOp attention;
};

MatMulOperators::MatMulOperators(low_precision::Kernel kernel)
    : operators_(std::make_unique<Operators>(kernel)) {}
MatMulOperators::~MatMulOperators() = default;

void MatMulOperators::add_to(Ort::CustomOpDomain& domain) const {
  domain.Add(&operators_->matmul);
  domain.Add(&operators_->attention);
}

}  // namespace cutout::ort
