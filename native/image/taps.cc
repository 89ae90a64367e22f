#include "image/taps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace cutout {

namespace {

/// The filter of these weights, laid out with a common stride.
Taps taps_of(std::vector<int> first, const std::vector<std::vector<float>>& weights) {
  Taps taps{0, std::move(first), {}, {}};
  for (const std::vector<float>& of_output : weights) {
    taps.count.push_back(static_cast<int>(of_output.size()));
    taps.stride = std::max(taps.stride, (taps.count.back() + 3) / 4 * 4);
  }
  const auto stride = static_cast<std::ptrdiff_t>(taps.stride);
  taps.weights.assign(weights.size() * static_cast<std::size_t>(stride), 0.0F);
  auto to = taps.weights.begin();
  for (const std::vector<float>& of_output : weights) {
    std::ranges::copy(of_output, to);
    to += stride;
  }
  return taps;
}

double lanczos3(double x) {
  if (x == 0) return 1;
  if (std::abs(x) >= 3) return 0;
  const double angle = std::numbers::pi * x;
  return 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle);
}

}  // namespace

Taps area_taps(int in, int out) {
  std::vector<int> first;
  std::vector<std::vector<float>> weights(static_cast<std::size_t>(out));
  for (int i = 0; i < out; ++i) {
    std::vector<float>& to = weights[static_cast<std::size_t>(i)];
    if (out <= in) {
      // In units of 1 / out of a pixel all positions are whole numbers.
      const std::int64_t begin = static_cast<std::int64_t>(i) * in;
      const std::int64_t end = begin + in;
      first.push_back(static_cast<int>(begin / out));
      for (std::int64_t j = first.back(); j * out < end; ++j) {
        const std::int64_t covered = std::min(end, (j + 1) * out) - std::max(begin, j * out);
        to.push_back(static_cast<float>(static_cast<double>(covered) / in));
      }
    } else {
      const double centre = std::clamp((i + 0.5) * in / out - 0.5, 0.0, in - 1.0);
      first.push_back(static_cast<int>(centre));
      const double fraction = centre - first.back();
      to.push_back(static_cast<float>(1 - fraction));
      if (fraction > 0) to.push_back(static_cast<float>(fraction));
    }
  }
  return taps_of(std::move(first), weights);
}

Taps lanczos3_taps(int in, int out) {
  if (in == out) return area_taps(in, out);
  std::vector<int> first;
  std::vector<std::vector<float>> weights(static_cast<std::size_t>(out));
  const double scale = static_cast<double>(in) / out;
  for (int i = 0; i < out; ++i) {
    const double centre = (i + 0.5) * scale - 0.5;
    first.push_back(std::max(0, static_cast<int>(std::floor(centre - 3 * scale)) + 1));
    const int last = std::min(in - 1, static_cast<int>(std::ceil(centre + 3 * scale)) - 1);
    double sum = 0;
    for (int j = first.back(); j <= last; ++j) sum += lanczos3((j - centre) / scale);
    for (int j = first.back(); j <= last; ++j) {
      weights[static_cast<std::size_t>(i)].push_back(
          static_cast<float>(lanczos3((j - centre) / scale) / sum));
    }
  }
  return taps_of(std::move(first), weights);
}

}  // namespace cutout
