#pragma once

#include <span>

#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

// Everything but convolutions, each for output rows [first, last) and as
// native/low_precision/program.h defines it for the type of its maps. Different rows may run at the
// same time.

/// Planes of floats of the output's size, divided by `scale` where it is quantised; further
/// channels are what stands for 0.
void read_planes(std::span<const float> planes, int channels, float scale, const Map& output,
                 int first, int last);
void max_pool(const MaxPool& pool, const Map& input, const Map& output, int first, int last);
void resize(int factor, const Map& input, const Map& output, int first, int last);
void add(const Add& add, const Map& a, const Map& b, const Map& output, int first, int last);
/// Into every pixel of `output`, `before` bytes from its start.
void copy(const Map& input, const Map& output, int before, int first, int last);
/// The largest of a map of floats, at least 0.
float max_value(const Map& input);
/// Floats from 0 to 65535 * unit in 16 bits: the high bytes of all channels, then the low bytes.
void split_bytes(const Map& input, float unit, const Map& output, int first, int last);
/// Sum of maps, divided by `scale` where the output is quantised.
void combine(std::span<const Map> inputs, bool relu, float scale, const Map& output, int first,
             int last);
/// The first channels to planes of floats; `scales` are those of quantised channels.
void write_planes(const Map& input, int channels, std::span<const float> scales,
                  std::span<float> planes, int first, int last);
/// To one plane of floats.
void sum(const Map& input, float scale, float low, std::span<float> plane, int first, int last);
/// Fills a border of `border` pixels around the map, and the kChunkInputs bytes after it. Kernels
/// multiply these by weights of 0; in bf16 the product is 0 only for finite values.
void fill_border(const Map& map, int border);

}  // namespace cutout::low_precision
