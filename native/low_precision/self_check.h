#pragma once

#include "low_precision/conv.h"

namespace cutout::low_precision {

/// Whether a kernel in bf16 computes a small convolution, all of whose sums are exact, as plain
/// arithmetic does: every number must be the same. Takes less than a millisecond.
bool multiplies_bf16(ConvKernel kernel);

}  // namespace cutout::low_precision
