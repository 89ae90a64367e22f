#pragma once

#include <span>

#include "core/status.h"
#include "core/thread_pool.h"
#include "pipeline/plan.h"

namespace cutout {

/// Converts a network's output to 0..1, in place: sigmoid for logits, then clamped. kModel when a
/// value is infinite or NaN.
Status to_probability(std::span<float> values, NetworkOutput output, ThreadPool& pool);

/// What to_probability returns for such an output.
Status not_finite_output();

}  // namespace cutout
