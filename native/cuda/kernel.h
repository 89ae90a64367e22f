#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/simd.h"

/// One source for two executors: library.cu launches kernels on a GPU, and that of the tests
/// (test/stress/cuda/host_executor.h) runs the same blocks, phases and threads in loops. A kernel
/// is a struct of plain values and pointers:
///
///   | kWidth, kHeight | threads of a block                                                         |
///   | kPhases         | parts of its work; all threads of a block end one before the next begins   |
///   | Shared          | memory of a block, not initialised; plain numbers only                     |
///   | run<phase>()    | what one thread does in one phase                                          |
///
/// In a phase a thread reads nothing that another one writes in it, and a block nothing that
/// another one writes, except by the functions at the end of this file.
namespace cutout::cuda {

/// Which thread of which block runs.
struct ThreadIndex {
  int block_x;
  int block_y;
  int thread_x;
  int thread_y;
};

struct NothingShared {};

template <typename Kernel>
inline constexpr int kThreads = Kernel::kWidth * Kernel::kHeight;

/// What every GPU from compute capability 7.5 on can launch.
template <typename Kernel>
concept Launchable =
    std::is_trivially_copyable_v<Kernel> &&
    sizeof(Kernel) <= 4096 && std::is_trivially_default_constructible_v<typename Kernel::Shared> &&
    sizeof(typename Kernel::Shared) <= 48 * 1024 && kThreads<Kernel> <= 1024 &&
    Kernel::kPhases >= 1;

/// Whether CUDA launches so many blocks.
inline bool fits_grid(int blocks_x, int blocks_y) {
  return blocks_x >= 1 && blocks_y >= 1 &&
         static_cast<std::int64_t>(blocks_x) * blocks_y <= INT32_MAX;
}

CUTOUT_HD int ceil_div(int count, int divisor) { return (count + divisor - 1) / divisor; }

CUTOUT_HD std::ptrdiff_t index_of(int x, int y, int width) {
  return static_cast<std::ptrdiff_t>(y) * width + x;
}

CUTOUT_HD int clamp(int value, int low, int high) {
  return value < low ? low : (value > high ? high : value);
}

/// A kernel with one thread for each element of a plane: calls `body(x, y)`.
template <typename Body>
struct OnPlane {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 1;
  using Shared = NothingShared;

  Body body;
  int width;
  int height;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    const int x = at.block_x * kWidth + at.thread_x;
    const int y = at.block_y * kHeight + at.thread_y;
    if (x < width && y < height) body(x, y);
  }
};

/// Runs a kernel with as many blocks as cover a plane; none for an empty one.
template <typename Executor, typename Kernel>
void cover_plane(Executor& on, int width, int height, const Kernel& kernel) {
  if (width < 1 || height < 1) return;
  on.run(ceil_div(width, Kernel::kWidth), ceil_div(height, Kernel::kHeight), kernel);
}

template <typename Executor, typename Body>
void over_plane(Executor& on, int width, int height, const Body& body) {
  cover_plane(on, width, height, OnPlane<Body>{body, width, height});
}

/// A kernel with one thread for each element of a plane, which adds up what they give: in each
/// block, whose `Body::Part` begin() sets and add() adds an element to, and end() adds the part to
/// the whole.
template <typename Body>
struct SumOverPlane {
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 8;
  static constexpr int kPhases = 3;
  using Shared = typename Body::Part;

  Body body;
  int width;
  int height;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& part) const {
    if constexpr (kPhase == 1) {
      const int x = at.block_x * kWidth + at.thread_x;
      const int y = at.block_y * kHeight + at.thread_y;
      if (x < width && y < height) body.add(part, x, y);
    } else if (at.thread_x == 0 && at.thread_y == 0) {
      if constexpr (kPhase == 0) {
        body.begin(part);
      } else {
        body.end(part);
      }
    }
  }
};

template <typename Executor, typename Body>
void sum_over_plane(Executor& on, int width, int height, const Body& body) {
  cover_plane(on, width, height, SumOverPlane<Body>{body, width, height});
}

// Memory that several threads read and change at the same time. They see their changes of one word
// in some order, changes of different words in any. Each returns what was there before.

/// What the host does before it reads or changes such a word: nothing, or, in the shuffled order of
/// the tests' host executor, what other threads do.
using BeforeAtomic = void (*)();
inline thread_local BeforeAtomic before_atomic = nullptr;

inline void let_others_run() {
  if (before_atomic != nullptr) before_atomic();
}

template <typename T>
CUTOUT_HD T atomic_load(const T* from) {
#if defined(__CUDA_ARCH__)
  return *static_cast<const volatile T*>(from);
#else
  let_others_run();
  return __atomic_load_n(from, __ATOMIC_RELAXED);
#endif
}

template <typename T>
CUTOUT_HD void atomic_store(T* to, std::type_identity_t<T> value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile T*>(to) = value;
#else
  let_others_run();
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
#endif
}

CUTOUT_HD std::uint32_t atomic_or(std::uint32_t* to, std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return atomicOr(to, bits);
#else
  let_others_run();
  return __atomic_fetch_or(to, bits, __ATOMIC_RELAXED);
#endif
}

template <typename T>
CUTOUT_HD T atomic_add(T* to, std::type_identity_t<T> value) {
#if defined(__CUDA_ARCH__)
  return atomicAdd(to, value);
#else
  let_others_run();
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
#endif
}

CUTOUT_HD int atomic_min(int* to, int value) {
#if defined(__CUDA_ARCH__)
  return atomicMin(to, value);
#else
  let_others_run();
  int before = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (value < before && !__atomic_compare_exchange_n(to, &before, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
  }
  return before;
#endif
}

CUTOUT_HD int atomic_max(int* to, int value) {
#if defined(__CUDA_ARCH__)
  return atomicMax(to, value);
#else
  let_others_run();
  int before = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (value > before && !__atomic_compare_exchange_n(to, &before, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
  }
  return before;
#endif
}

}  // namespace cutout::cuda
