#pragma once

#include <onnxruntime_cxx_api.h>

#include <memory>
#include <optional>
#include <string>

#include "core/cancel.h"
#include "core/status.h"
#include "low_precision/kernels.h"

namespace cutout::ort {

/// The token of the run that this thread is in, for Cutout's own operators: ONNX Runtime checks its
/// own flag only between two operators.
class RunToken {
 public:
  explicit RunToken(const CancelToken& token);
  ~RunToken();
  RunToken(const RunToken&) = delete;
  RunToken& operator=(const RunToken&) = delete;

  /// Null outside a run.
  static const CancelToken* current();
};

/// The domain `cutout` with one operator: `IntegerNetwork`, the 8-bit part of a network as one
/// node, or `Bf16Network`, the convolutional part of a network in bf16 (native/low_precision).
///
/// | input | type    | shape                            | what                                     |
/// |-------|---------|----------------------------------|------------------------------------------|
/// | 0     | float32 | [batch, channels, height, width] | of the network                           |
/// | 1     | int64   | [n], constant                    | the operations (low_precision::Program::read)  |
/// | 2     | float32 | [n], constant                    | scales and other constants               |
/// | 3     | int32   | [n], constant                    | biases                                   |
/// | 4     | int8    | [n], constant                    | packed weights, used where they lie      |
///
/// Of `Bf16Network` input 3 is empty and the weights are pairs of bytes.
///
/// Outputs: float32 [batch, channels, height, width] each. It runs on the session's threads; its
/// memory comes from the session's allocator, for the time of a run. With a kernel in bf16 the
/// domain has the operators of matmul_ops.h too.
class LowPrecisionDomain {
 public:
  /// `kernel` computes the convolutions and decides which operator it is. A session that knows the
  /// domain must not outlive it.
  explicit LowPrecisionDomain(low_precision::Kernel kernel);
  ~LowPrecisionDomain();
  LowPrecisionDomain(const LowPrecisionDomain&) = delete;
  LowPrecisionDomain& operator=(const LowPrecisionDomain&) = delete;

  void add_to(Ort::SessionOptions& options) const;

 private:
  struct Operator;

  std::unique_ptr<Operator> operator_;
  Ort::CustomOpDomain domain_;
};

/// Adds the domain for an instruction set to a session's options; with an empty one nothing.
/// `domain` must live as long as the session. kRuntime without a kernel for it on this processor.
Status add_operators(const std::string& instruction_set, Ort::SessionOptions& options,
                     std::optional<LowPrecisionDomain>& domain);

}  // namespace cutout::ort
