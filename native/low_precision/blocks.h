#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cancel.h"
#include "low_precision/conv.h"
#include "low_precision/program.h"
#include "low_precision/rows.h"
#include "low_precision/run.h"

namespace cutout::low_precision {

/// Parts of an operator that may run at the same time; each has memory of its own.
inline constexpr std::size_t kMaxRunningParts = 16;

constexpr std::size_t parts_of(std::size_t units) { return std::min(units, kMaxRunningParts); }

/// `work(part, each)` for every part; `each(body)` calls `body(unit)` for the part's units in their
/// order. A stopped run leaves the rest out.
template <typename Work>
Status for_each_part(std::size_t units, const Parallel& parallel, const CancelToken* token,
                     const Work& work) {
  const std::size_t parts = parts_of(units);
  const auto part_of = [&](std::size_t part) {
    work(part, [&](const auto& body) {
      for (std::size_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        if (token != nullptr && !token->check().ok()) return;
        body(unit);
      }
    });
  };
  if (parts == 1) {
    part_of(0);
  } else if (parts > 1) {
    parallel(parts, part_of);
  }
  return token == nullptr ? Status() : token->check();
}

/// A product with `inputs` rows of packed weights in bf16, or in 8 bits from -64 to 64, and
/// `outputs` columns, as the convolution of one row of pixels.
inline Conv matmul_conv(bool bf16, int inputs, int outputs) {
  Conv conv;
  conv.kernel_height = 1;
  conv.kernel_width = 1;
  conv.outputs = outputs;
  conv.bf16 = bf16;
  conv.int7_weights = !bf16;
  conv.channels = inputs;
  const int bytes = conv.pixel_bytes();
  for (int at = 0; at < bytes; at += kChunkInputs) {
    conv.chunks.push_back({0, 0, at, std::min(kChunkInputs, bytes - at)});
  }
  return conv;
}

/// `rows` pixels `stride` numbers apart.
inline Map row_map(void* data, int rows, int channels, Type type, int stride) {
  const auto bytes = std::ptrdiff_t{stride} * bytes_of(type);
  return {static_cast<std::uint8_t*>(data), rows, 1, channels, type, 0, bytes, rows * bytes};
}

/// Multiplies rows of bf16 or of bytes, which lie `stride` numbers apart; `wide` has room for them
/// where their columns are no whole groups.
inline void multiply_rows(ConvKernel kernel, const Conv& conv, void* from, int stride,
                          const OutputRows& to, float* wide) {
  const bool whole = conv.outputs == to.columns;
  const auto to_stride = whole ? static_cast<int>(to.stride) : conv.outputs;
  const Map input =
      row_map(from, to.rows, conv.channels, conv.bf16 ? Type::kBf16 : Type::kQuantised, stride);
  const Map output =
      row_map(whole ? to.data : wide, to.rows, conv.outputs, Type::kFloats, to_stride);
  kernel(ConvTask(conv, input, output, 1), 0, 1, 0, conv.groups());
  for (int row = 0; row < to.rows && !whole; ++row) {
    std::copy_n(wide + std::ptrdiff_t{row} * to_stride, to.columns, to.data + row * to.stride);
  }
}

}  // namespace cutout::low_precision
