#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cancel.h"
#include "core/status.h"
#include "low_precision/conv.h"
#include "low_precision/run.h"

namespace cutout::low_precision {

/// Attention of several heads in bf16: softmax(scale * queries · keysᵀ) · values for each image of
/// the batch and each head, whose channels lie side by side in a row.
///
/// Queries, keys, values and the exponentials of the softmax are rounded to the nearest bf16, to
/// even; sums are floats.
struct Attention {
  std::size_t batch = 0;
  int queries = 0;  // rows
  int keys = 0;     // rows, and of the values too
  int heads = 0;
  int channels = 0;  // of a head, of queries and keys
  int value_channels = 0;
  float scale = 1;  // above 0

  struct Inputs {
    const float* queries = nullptr;  // [batch, queries, heads, channels]
    const float* keys = nullptr;     // [batch, keys, heads, channels]
    const float* values = nullptr;   // [batch, keys, heads, value_channels]
  };

  /// Ok, or kModel for a shape or a scale that is not computed.
  [[nodiscard]] Status check() const;

  /// Memory of a run, to be aligned to Plan::kAlignment.
  [[nodiscard]] std::size_t bytes_of_run() const;

  /// Writes `output`, [batch, queries, heads, value_channels]. `token` may be null; a stopped one
  /// ends the run with its reason.
  Status run(ConvKernel kernel, const Inputs& inputs, float* output, std::span<std::uint8_t> memory,
             const Parallel& parallel, const CancelToken* token) const;
};

}  // namespace cutout::low_precision
