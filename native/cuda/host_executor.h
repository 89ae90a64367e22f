#pragma once

#include <cstring>
#include <utility>

#include "cuda/kernel.h"

namespace cutout::cuda {

/// The order in which the host runs blocks and threads of a phase. Kernels that obey kernel.h give
/// the same in any order.
enum class Order { kForwards, kBackwards };

/// Runs kernels on the calling thread.
template <Order kOrder>
class HostExecutor {
 public:
  explicit HostExecutor(void* /*stream*/) {}

  template <Launchable Kernel>
  void run(int blocks_x, int blocks_y, const Kernel& kernel) {
    if (!fits_grid(blocks_x, blocks_y)) result_ = kRefused;
    if (result_ != 0) return;
    for (int i = 0; i < blocks_x * blocks_y; ++i) {
      const int block = in_order(i, blocks_x * blocks_y);
      typename Kernel::Shared shared;
      std::memset(static_cast<void*>(&shared), 0xFF, sizeof shared);  // not a number
      run_phases(kernel, block % blocks_x, block / blocks_x, shared,
                 std::make_integer_sequence<int, Kernel::kPhases>());
    }
  }

  /// 0, or kRefused if a launch was out of CUDA's limits.
  static constexpr int kRefused = 9;
  [[nodiscard]] int result() const { return result_; }

 private:
  static int in_order(int i, int n) { return kOrder == Order::kForwards ? i : n - 1 - i; }

  template <typename Kernel, int... kPhase>
  static void run_phases(const Kernel& kernel, int block_x, int block_y,
                         typename Kernel::Shared& shared, std::integer_sequence<int, kPhase...>) {
    const auto phase = [&]<int kNumber>(std::integral_constant<int, kNumber>) {
      for (int i = 0; i < kThreads<Kernel>; ++i) {
        const int thread = in_order(i, kThreads<Kernel>);
        kernel.template run<kNumber>(
            ThreadIndex{block_x, block_y, thread % Kernel::kWidth, thread / Kernel::kWidth},
            shared);
      }
    };
    (phase(std::integral_constant<int, kPhase>()), ...);
  }

  int result_ = 0;
};

}  // namespace cutout::cuda
