#pragma once

#include "cuda/kernel.h"
#include "matte/math/probability.h"

namespace cutout::cuda {

/// A network's output as probabilities, in place; `not_finite` becomes 1 where a value is infinite
/// or not a number, and is not changed otherwise.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | count     | at most 2^31 - 1024                                                                  |
/// | agreement | to_probability: without a sigmoid bit-equal; with it within 3e-7 on a GPU, whose     |
/// |           | exponential is another, and bit-equal on the host                                    |
struct Probability {
  static constexpr int kWidth = 256;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 1;
  using Shared = NothingShared;

  float* values;
  int count;
  bool logit;
  std::uint32_t* not_finite;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    const int i = at.block_x * kWidth + at.thread_x;
    if (i >= count) return;
    if (!finite(values[i])) atomic_or(not_finite, 1);
    values[i] = probability(values[i], logit);
  }
};

template <typename Executor>
void to_probability(Executor& on, float* values, std::size_t count, bool logit,
                    std::uint32_t* not_finite) {
  const auto n = static_cast<int>(count);
  cover_plane(on, n, 1, Probability{values, n, logit, not_finite});
}

}  // namespace cutout::cuda
