#pragma once

#include "core/thread_pool.h"
#include "matte/guide.h"
#include "matte/matting_energy.h"

namespace cutout {

/// Minimises the energy over its tiles by at most kMaxIterations of conjugate gradients with the
/// energy's diagonal as preconditioner (matte/math/deblur.h: number of steps and tolerance).
/// `alpha` and `direction` are planes of guide.size(): alpha holds the start and then the minimum,
/// which may lie outside 0..1; `direction` holds 0 and is scratch.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | scratch   | two planes of floats                                                                   |
/// | threads   | tiles over the pool; same bytes for any number of threads                              |
/// | agreement | cuda/kernels/conjugate_gradients.h gives the same bytes                                |
void minimise(const MattingEnergy& energy, const Guide& guide, ThreadPool& pool, float* alpha,
              float* direction);

}  // namespace cutout
