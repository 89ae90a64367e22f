#pragma once

#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

/// Output rows [first, last) of a convolution of every channel with its own kernel, of maps of
/// bf16 of whole groups of kLanes channels. Every product and sum is rounded to a float, the taps
/// in their order after the bias, so that the result is the same on every processor. Different
/// rows may run at the same time.
void depthwise_bf16(const Conv& conv, const Map& input, const Map& output, int first, int last);

}  // namespace cutout::low_precision
