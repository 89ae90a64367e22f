#pragma once

#include <onnxruntime_cxx_api.h>

#include <memory>

#include "low_precision/kernels.h"

namespace cutout::ort {

/// The operators of the domain `cutout` for networks in bf16 that are no program of convolutions:
///
/// `Bf16Product`: matmuls of the same rows with constant matrices (low_precision::MatMul).
///
/// | input, attribute | type    | shape             | what                                        |
/// |------------------|---------|-------------------|---------------------------------------------|
/// | 0                | float32 | [.., inputs]      | the rows                                    |
/// | 1                | int8    | [n], constant     | packed weights, used where they lie         |
/// | 2                | float32 | [n], constant     | biases                                      |
/// | inputs           | int     |                   | rows of each matrix                         |
/// | columns          | ints    |                   | columns of each matrix, one for each output |
/// | gelu             | int     |                   | 1: GELU of the outputs                      |
///
/// Outputs: float32 [.., columns] each.
///
/// `Bf16Attention`: softmax(scale * queries · keysᵀ) · values (low_precision::Attention).
///
/// | input, attribute | type    | shape                      | what                               |
/// |------------------|---------|----------------------------|------------------------------------|
/// | 0, 1, 2          | float32 | [batch, rows, channels]    | queries, keys, values              |
/// | heads            | int     |                            | which share the channels           |
/// | scale            | float   |                            | 0: 1 / sqrt(channels of a head)    |
///
/// Output: float32 [batch, rows of the queries, channels of the values].
///
/// Both run on the session's threads; their memory comes from the session's allocator.
class MatMulOperators {
 public:
  /// `kernel` is one for bf16. A session that knows the domain must not outlive them.
  explicit MatMulOperators(low_precision::Kernel kernel);
  ~MatMulOperators();
  MatMulOperators(const MatMulOperators&) = delete;
  MatMulOperators& operator=(const MatMulOperators&) = delete;

  void add_to(Ort::CustomOpDomain& domain) const;

 private:
  struct Operators;

  std::unique_ptr<Operators> operators_;
};

}  // namespace cutout::ort
