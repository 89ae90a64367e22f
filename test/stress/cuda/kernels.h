#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "core/thread_pool.h"
#include "stress/cuda/cases.h"

namespace cutout::test {

using Tables = std::span<const cuda::Table* const>;

/// For the CPU's functions: the calling thread alone.
inline ThreadPool& pool() {
  static ThreadPool instance(0);
  return instance;
}

/// A kernel, the difference from the CPU that its header allows, and its share of all cases.
struct Check {
  const char* name;
  double limit_on_host;
  double limit_on_device;
  int share;
  /// One random case: on every table the largest difference from the CPU.
  void (*run)(Cases& cases, Tables tables, std::span<double> found);
};

std::span<const Check> image_checks();
std::span<const Check> matte_checks();
std::span<const Check> subject_checks();
std::span<const Check> sample_checks();

/// In how many of random cases, in three orders each, components get other labels than by a flood
/// fill.
int wrong_labels(int cases);

/// The largest difference; infinite where the sizes differ or one is not a number.
template <typename T>
double difference(const std::vector<T>& a, const std::vector<T>& b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinite;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = d >= 0 ? std::max(most, d) : kInfinite;
  }
  return most;
}

}  // namespace cutout::test
