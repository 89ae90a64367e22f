#include "pipeline/probability.h"

#include <atomic>

#include "matte/math/probability.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 1 << 16;  // values in a range

}  // namespace

Status to_probability(std::span<float> values, NetworkOutput output, ThreadPool& pool) {
  const bool logit = output == NetworkOutput::kLogit;
  std::atomic<bool> all_finite{true};
  pool.parallel_for(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    bool good = true;
    for (float& value : values.subspan(begin, end - begin)) {
      good &= finite(value);
      value = probability(value, logit);
    }
    if (!good) all_finite = false;
  });
  return all_finite ? Status{} : not_finite_output();
}

Status not_finite_output() {
  return {Code::kModel, "The network's output holds values that are not finite numbers."};
}

}  // namespace cutout
