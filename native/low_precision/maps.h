#pragma once

#include <span>

#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

// Everything but convolutions, each for output rows [first, last) and as
// native/low_precision/program.h defines it. Different rows may run at the same time.

/// Planes of floats of the output's size, divided by `scale`; further channels are the zero point.
void quantise(std::span<const float> planes, int channels, float scale, int zero, const Map& output,
              int first, int last);
void max_pool(const MaxPool& pool, const Map& input, const Map& output, int first, int last);
void resize(const Resize& resize, const Map& input, const Map& output, int first, int last);
void resize_floats(const Resize& resize, const Map& input, const Map& output, int first, int last);
void add(const Add& add, const Map& a, const Map& b, const Map& output, int first, int last);
/// Into every pixel of `output`, `before` bytes from its start.
void copy(const Map& input, const Map& output, int before, int first, int last);
/// The largest of a map of floats, at least 0.
float max_value(const Map& input);
/// Floats from 0 to 65535 * unit in 16 bits: the high bytes of all channels, then the low bytes.
void split_bytes(const Map& input, float unit, const Map& output, int first, int last);
/// Sum of maps of floats as floats.
void combine(std::span<const Map> inputs, bool relu, const Map& output, int first, int last);
/// Likewise, quantised by `scale`.
void combine_quantised(std::span<const Map> inputs, bool relu, float scale, int zero,
                       const Map& output, int first, int last);
/// A quantised map to planes of floats.
void dequantise(const Map& input, std::span<const float> scales, int zero, std::span<float> planes,
                int first, int last);
/// The first channels of floats to planes.
void to_nchw(const Map& input, int channels, std::span<float> planes, int first, int last);
/// To one plane of floats.
void sum(const Map& input, float scale, float low, std::span<float> plane, int first, int last);
/// Fills a border of `border` pixels around the map, and the kChunkInputs bytes after it. Kernels
/// multiply these by weights of 0; in bf16 the product is 0 only for finite values.
void fill_border(const Map& map, int border, int zero);

}  // namespace cutout::low_precision
