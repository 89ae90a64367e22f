#pragma once

#include <span>

namespace cutout {

/// Whether no value is infinite or NaN. Any size; runs on the calling thread.
bool all_finite(std::span<const float> values);

}  // namespace cutout
