#pragma once

#include <span>

namespace cutout {

/// Neither infinite nor NaN, none of them. Any size; the calling thread; reads every value once.
bool all_finite(std::span<const float> values);

}  // namespace cutout
