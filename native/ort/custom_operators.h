#pragma once

#include <onnxruntime_cxx_api.h>

#include <memory>
#include <string>

#include "core/cancel.h"
#include "core/status.h"

namespace cutout::ort {

/// The token of the run that this thread is in, for Cutout's own operators: ONNX Runtime checks its
/// own flag only between two operators.
class RunToken {
 public:
  explicit RunToken(const CancelToken& token);
  ~RunToken();
  RunToken(const RunToken&) = delete;
  RunToken& operator=(const RunToken&) = delete;
};

/// Adds the domain `cutout` for an instruction set to a session's options; with an empty one
/// nothing. `operators` owns it and must live as long as the session. kRuntime without a kernel for
/// it on this processor. All operators run on the session's threads; their memory comes from the
/// session's allocator, for the time of a run.
///
/// `IntegerNetwork`: the 8-bit part of a network as one node; or `Bf16Network`: the convolutional
/// part of a network in bf16 (native/low_precision).
///
/// | input | type    | shape                            | what                                     |
/// |-------|---------|----------------------------------|------------------------------------------|
/// | 0     | float32 | [batch, channels, height, width] | of the network                           |
/// | 1     | int64   | [n], constant                    | the operations (low_precision::Program::read)  |
/// | 2     | float32 | [n], constant                    | scales and other constants               |
/// | 3     | int32   | [n], constant                    | biases                                   |
/// | 4     | int8    | [n], constant                    | packed weights, used where they lie      |
///
/// Input 3 of `Bf16Network` is empty, and its weights are pairs of bytes.
///
/// Outputs: float32 [batch, channels, height, width] each.
///
/// More compute in bf16 or in 8 bits, for networks that are no program of convolutions.
///
/// `Bf16Product`, `Int8Product`: matmuls of the same rows with constant matrices
/// (low_precision::MatMul). Inputs: rows, float32 [.., inputs]; packed weights, int8 [n], used
/// where they lie, and biases and more (low_precision::Matrix), float32 [n], both constant.
/// Attributes: inputs; columns, a list with those of each matrix; and gelu, 1 for GELU of the
/// outputs. Outputs: float32 [.., columns] each.
///
/// `Bf16Attention`: softmax(scale * queries · keysᵀ) · values (low_precision::Attention). Inputs:
/// queries, keys and values, float32 [batch, rows, channels]. Attributes: heads, which share the
/// channels; and scale, a float, 0 for 1 / sqrt(channels of a head). Output: float32 [batch, rows
/// of the queries, channels of the values].
///
/// `Bf16Conv`, `Int8Conv`, `Bf16DeformConv` and `Int8DeformConv`: one convolution
/// (low_precision::Convolution). Inputs: planes, float32 [batch, channels, height, width]; weights
/// and biases as above, both constant; deformable ones also have offsets, float32 [batch, 2 · taps,
/// ..], and masks, [batch, taps, ..], as ONNX's DeformConv in one group. Attributes, integers or
/// lists of them: channels, outputs, kernel [2], stride, dilation, pads [4] and relu (0 or 1).
///
/// Output: float32 [batch, outputs, height, width].
Status add_operators(const std::string& instruction_set, Ort::SessionOptions& options,
                     std::shared_ptr<void>& operators);

}  // namespace cutout::ort
