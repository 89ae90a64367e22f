#include "image/taps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace cutout {

namespace {

/// Collects taps output by output, then lays them out with a common stride.
class TapsBuilder {
 public:
  explicit TapsBuilder(int outputs) {
    taps_.first.reserve(static_cast<std::size_t>(outputs));
    taps_.count.reserve(static_cast<std::size_t>(outputs));
  }

  void begin(int first) {
    taps_.first.push_back(first);
    taps_.count.push_back(0);
  }

  void add(double weight) {
    packed_.push_back(static_cast<float>(weight));
    ++taps_.count.back();
  }

  Taps finish() {
    const int longest = *std::max_element(taps_.count.begin(), taps_.count.end());
    taps_.stride = (longest + 3) / 4 * 4;
    const auto stride = static_cast<std::size_t>(taps_.stride);
    taps_.weights.assign(taps_.first.size() * stride, 0.0F);
    auto from = packed_.begin();
    for (std::size_t i = 0; i < taps_.first.size(); ++i) {
      const auto to = from + taps_.count[i];
      std::copy(from, to, taps_.weights.begin() + static_cast<std::ptrdiff_t>(i * stride));
      from = to;
    }
    return std::move(taps_);
  }

 private:
  Taps taps_;
  std::vector<float> packed_;
};

double lanczos3(double x) {
  if (x == 0) return 1;
  if (std::abs(x) >= 3) return 0;
  const double angle = std::numbers::pi * x;
  return 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle);
}

}  // namespace

Taps area_taps(int in, int out) {
  TapsBuilder taps(out);
  for (int i = 0; i < out; ++i) {
    if (out <= in) {
      // In units of 1 / out of a pixel all positions are whole numbers.
      const std::int64_t begin = static_cast<std::int64_t>(i) * in;
      const std::int64_t end = begin + in;
      const auto first = static_cast<int>(begin / out);
      taps.begin(first);
      for (std::int64_t j = first; j * out < end; ++j) {
        const std::int64_t covered = std::min(end, (j + 1) * out) - std::max(begin, j * out);
        taps.add(static_cast<double>(covered) / in);
      }
    } else {
      const double centre = std::clamp((i + 0.5) * in / out - 0.5, 0.0, in - 1.0);
      const auto first = static_cast<int>(centre);
      const double fraction = centre - first;
      taps.begin(first);
      taps.add(1 - fraction);
      if (fraction > 0) taps.add(fraction);
    }
  }
  return taps.finish();
}

Taps lanczos3_taps(int in, int out) {
  if (in == out) return area_taps(in, out);
  TapsBuilder taps(out);
  const double scale = static_cast<double>(in) / out;
  for (int i = 0; i < out; ++i) {
    const double centre = (i + 0.5) * scale - 0.5;
    const int first = std::max(0, static_cast<int>(std::floor(centre - 3 * scale)) + 1);
    const int last = std::min(in - 1, static_cast<int>(std::ceil(centre + 3 * scale)) - 1);
    double sum = 0;
    for (int j = first; j <= last; ++j) sum += lanczos3((j - centre) / scale);
    taps.begin(first);
    for (int j = first; j <= last; ++j) taps.add(lanczos3((j - centre) / scale) / sum);
  }
  return taps.finish();
}

}  // namespace cutout
