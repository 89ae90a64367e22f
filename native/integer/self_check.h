#pragma once

#include "integer/conv.h"

namespace cutout::integer {

/// Whether a kernel in bf16 computes a small convolution, all of whose sums are exact, as plain
/// arithmetic does: every number must be the same. Takes less than a millisecond.
bool multiplies_bf16(ConvKernel kernel);

}  // namespace cutout::integer
