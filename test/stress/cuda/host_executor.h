#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/kernel.h"

namespace cutout::test {

/// The order in which the host runs blocks and threads of a phase. Kernels that obey kernel.h give
/// the same in any order. kShuffled: a random one, blocks on several threads of the host; between
/// two accesses of a thread to memory that others change, others may run.
enum class Order { kForwards, kBackwards, kShuffled };

/// Threads or blocks that have not run yet: `take` runs the next one, and returns false when there
/// is none.
struct RunQueue {
  bool (*take)(void* from) = nullptr;
  void* from = nullptr;

  template <typename Take>
  static RunQueue by(Take& take) {
    return {[](void* from) { return (*static_cast<Take*>(from))(); }, &take};
  }
};

/// Runs waiting threads and blocks between two accesses of a thread to memory that others change:
/// each of them from its beginning to its end, in which further ones may run likewise. One for each
/// thread of the host.
class Interleaving {
 public:
  explicit Interleaving(RunQueue blocks) : blocks_(blocks) {
    current() = this;
    cuda::before_atomic = [] { current()->run_others(); };
  }
  ~Interleaving() {
    cuda::before_atomic = nullptr;
    current() = nullptr;
  }
  Interleaving(const Interleaving&) = delete;
  Interleaving& operator=(const Interleaving&) = delete;

  static Interleaving*& current() {
    static thread_local Interleaving* instance = nullptr;
    return instance;
  }
  /// The threads of the phase that runs; returns those of the one around it.
  RunQueue set_threads(RunQueue threads) { return std::exchange(threads_, threads); }
  std::minstd_rand& random() { return random_; }

 private:
  static constexpr int kDeepest = 5;

  void run_others() {
    if (depth_ == kDeepest || random_() % 4 != 0) return;
    ++depth_;
    const RunQueue& others = random_() % 16 == 0 ? blocks_ : threads_;
    if (others.take != nullptr) (void)others.take(others.from);
    --depth_;
  }

  RunQueue blocks_;
  RunQueue threads_;
  std::minstd_rand random_;
  int depth_ = 0;
};

/// Runs kernels until they are done, on the calling thread; in the shuffled order on others too.
template <Order kOrder>
class HostExecutor {
 public:
  explicit HostExecutor(void* /*stream*/) {}

  template <cuda::Launchable Kernel>
  void run(int blocks_x, int blocks_y, const Kernel& kernel) {
    if (!cuda::fits_grid(blocks_x, blocks_y)) result_ = kRefused;
    if (result_ != 0) return;
    const int blocks = blocks_x * blocks_y;
    if constexpr (kOrder == Order::kShuffled) {
      run_shuffled(blocks,
                   [&](int block) { run_block(kernel, block % blocks_x, block / blocks_x); });
    } else {
      for (int i = 0; i < blocks; ++i) {
        const int block = in_order(i, blocks);
        run_block(kernel, block % blocks_x, block / blocks_x);
      }
    }
  }

  /// 0, or kRefused if a launch was out of CUDA's limits.
  static constexpr int kRefused = 9;
  [[nodiscard]] int result() const { return result_; }

 private:
  static constexpr int kThreadsAtOnce = 4;

  static int in_order(int i, int n) { return kOrder == Order::kForwards ? i : n - 1 - i; }

  template <typename Run>
  static void run_shuffled(int blocks, const Run& run) {
    std::vector<int> order(static_cast<std::size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::minstd_rand(static_cast<unsigned>(blocks)));
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      auto take = [&] {
        const std::size_t i = next++;
        if (i < order.size()) run(order[i]);
        return i < order.size();
      };
      const Interleaving interleaving(RunQueue::by(take));
      while (take()) {
      }
    };
    std::vector<std::jthread> others;
    for (int i = 1; i < std::min(blocks, kThreadsAtOnce); ++i) others.emplace_back(work);
    work();
  }

  template <typename Kernel>
  static void run_block(const Kernel& kernel, int block_x, int block_y) {
    typename Kernel::Shared shared;
    std::memset(static_cast<void*>(&shared), 0xFF, sizeof shared);  // not a number
    run_phases(kernel, block_x, block_y, shared,
               std::make_integer_sequence<int, Kernel::kPhases>());
  }

  template <typename Kernel, int... kPhase>
  static void run_phases(const Kernel& kernel, int block_x, int block_y,
                         typename Kernel::Shared& shared, std::integer_sequence<int, kPhase...>) {
    std::array<int, static_cast<std::size_t>(cuda::kThreads<Kernel>)> order{};
    for (int i = 0; i < cuda::kThreads<Kernel>; ++i) {
      order[static_cast<std::size_t>(i)] = in_order(i, cuda::kThreads<Kernel>);
    }
    const auto phase = [&]<int kNumber>(std::integral_constant<int, kNumber>) {
      const auto run = [&](int thread) {
        kernel.template run<kNumber>(
            cuda::ThreadIndex{block_x, block_y, thread % Kernel::kWidth, thread / Kernel::kWidth},
            shared);
      };
      if constexpr (kOrder == Order::kShuffled) {
        Interleaving& interleaving = *Interleaving::current();
        std::ranges::shuffle(order, interleaving.random());
        std::size_t next = 0;
        auto take = [&] {
          if (next == order.size()) return false;
          run(order[next++]);
          return true;
        };
        const RunQueue around = interleaving.set_threads(RunQueue::by(take));
        while (take()) {
        }
        interleaving.set_threads(around);
      } else {
        for (const int thread : order) run(thread);
      }
    };
    (phase(std::integral_constant<int, kPhase>()), ...);
  }

  int result_ = 0;
};

}  // namespace cutout::test
