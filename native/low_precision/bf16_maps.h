#pragma once

#include <span>

#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

// Everything but convolutions on maps of bf16, each for output rows [first, last) and as
// native/low_precision/program.h defines it. Different rows may run at the same time.

/// Planes of floats of the output's size as bf16; further channels are 0.
void bf16_of_planes(std::span<const float> planes, int channels, const Map& output, int first,
                    int last);
void max_pool_bf16(const MaxPool& pool, const Map& input, const Map& output, int first, int last);
void resize_bf16(const Resize& resize, const Map& input, const Map& output, int first, int last);
/// Sum of maps.
void combine_bf16(std::span<const Map> inputs, bool relu, const Map& output, int first, int last);
/// The first channels to planes of floats.
void bf16_to_nchw(const Map& input, int channels, std::span<float> planes, int first, int last);

}  // namespace cutout::low_precision
