#include "scalar/classify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>

namespace cutout::test {

namespace {

constexpr std::size_t kColours = 4096;
constexpr int kHues = 6;

float& at(Statistics& statistics, Statistic which) {
  return statistics[static_cast<std::size_t>(which)];
}

float& at(RegionStatistics& statistics, RegionStatistic which) {
  return statistics[static_cast<std::size_t>(which)];
}

bool in_border(int x, int y, int side, int border) {
  return x < border || y < border || x >= side - border || y >= side - border;
}

int luma_of(int r, int g, int b) { return (77 * r + 150 * g + 29 * b + 128) >> 8; }

std::size_t colour_of(int r, int g, int b) {
  return static_cast<std::size_t>((r >> 4) << 8 | (g >> 4) << 4 | b >> 4);
}

}  // namespace

std::vector<Pooled> pool_maps_scalar(std::span<const float> maps, std::span<const float> weights) {
  const std::size_t n = weights.size();
  double weight_sum = 0;
  for (const float weight : weights) weight_sum += static_cast<double>(weight);
  std::vector<float> effective(weights.begin(), weights.end());
  if (weight_sum < 1e-6) {
    effective.assign(n, 1.0F);
    weight_sum = static_cast<double>(n);
  }
  std::vector<Pooled> pooled(maps.size() / n);
  for (std::size_t m = 0; m < pooled.size(); ++m) {
    const std::span<const float> map = maps.subspan(m * n, n);
    double sum = 0;
    pooled[m].max = map[0] * effective[0];
    for (std::size_t i = 0; i < n; ++i) {
      sum += static_cast<double>(map[i]) * static_cast<double>(effective[i]);
      pooled[m].max = std::max(pooled[m].max, map[i] * effective[i]);
    }
    pooled[m].mean = static_cast<float>(sum / weight_sum);
  }
  return pooled;
}

void border_statistics_scalar(const Thumbnail& thumbnail, Statistics& statistics) {
  const int side = thumbnail.side;
  const int width = std::max(1, side / 50);  // of the border: 2 % of the side
  std::array<int, 3> median{};
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<int> border;
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        if (in_border(x, y, side, width)) border.push_back(thumbnail.row(c, y)[x]);
      }
    }
    std::sort(border.begin(), border.end());
    median[c] = border[(border.size() - 1) / 2];
  }
  std::int64_t border = 0;
  std::int64_t uniform = 0;
  std::int64_t background = 0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      bool near = true;
      for (std::size_t c = 0; c < 3; ++c)
        near = near && std::abs(thumbnail.row(c, y)[x] - median[c]) <= 16;
      const bool outermost = in_border(x, y, side, width);
      background += near ? 1 : 0;
      border += outermost ? 1 : 0;
      uniform += near && outermost ? 1 : 0;
    }
  }
  const auto [least, most] = std::ranges::minmax(median);
  const auto share_of = [](std::int64_t part, double whole) {
    return static_cast<float>(static_cast<double>(part) / whole);
  };
  at(statistics, Statistic::kBorderLight) = static_cast<float>(least) / 255.0F;
  at(statistics, Statistic::kBorderDark) = 1.0F - static_cast<float>(most) / 255.0F;
  at(statistics, Statistic::kBorderUniform) = share_of(uniform, static_cast<double>(border));
  at(statistics, Statistic::kBackground) = share_of(background, static_cast<double>(side) * side);
}

Regions region_statistics_scalar(const Thumbnail& thumbnail, std::span<const float> weights) {
  const int side = thumbnail.side;
  const auto n = static_cast<std::size_t>(side);
  const auto value = [&](std::size_t c, int x, int y) {
    return static_cast<int>(thumbnail.row(c, std::min(y, side - 1))[std::min(x, side - 1)]);
  };
  const auto weight_at = [&](int x, int y) {
    const float weight = weights[static_cast<std::size_t>(y) * n + static_cast<std::size_t>(x)];
    return static_cast<int>(std::clamp(weight, 0.0F, 1.0F) * 255 + 0.5F) / 255.0;  // in steps
  };
  double subject = 0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) subject += weight_at(x, y);
  }
  const double pixels = static_cast<double>(n * n);

  // Statistics inside (`within`) or outside the matte.
  const auto described_under = [&](bool within) {
    const double wanted = within ? subject : pixels - subject;
    const bool whole = wanted * 2048 < pixels * (1 - 1e-12);
    const double sum = whole ? pixels : wanted;
    const auto mean = [&](auto&& of) {
      double total = 0;
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
          const double w = whole ? 1 : within ? weight_at(x, y) : 1 - weight_at(x, y);
          total += w * static_cast<double>(of(x, y));
        }
      }
      return total / sum;
    };
    const auto step = [&](int x, int y) {
      int across = 0;
      int down = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        across += std::abs(value(c, x, y) - value(c, x + 1, y));
        down += std::abs(value(c, x, y) - value(c, x, y + 1));
      }
      return std::max(across, down);
    };
    const auto chroma = [&](int x, int y) {
      const auto [least, most] = std::minmax({value(0, x, y), value(1, x, y), value(2, x, y)});
      return most - least;
    };
    const auto luma = [&](int x, int y) {
      return luma_of(value(0, x, y), value(1, x, y), value(2, x, y));
    };
    // In units of 60 degrees, red at 0.
    const auto hue = [&](int x, int y) {
      const double r = value(0, x, y);
      const double g = value(1, x, y);
      const double b = value(2, x, y);
      const double d = chroma(x, y);
      if (d == 0) return 0.0;
      if (r >= g && r >= b) return (g - b) / d;
      if (g >= b) return (b - r) / d + 2;
      return (r - g) / d + 4;
    };
    RegionStatistics statistics{};
    const auto set = [&](RegionStatistic which, double number) {
      at(statistics, which) = static_cast<float>(number);
    };
    set(RegionStatistic::kFlat, mean([&](int x, int y) { return step(x, y) <= 2; }));
    set(RegionStatistic::kSmooth, mean([&](int x, int y) { return step(x, y) <= 6; }));
    set(RegionStatistic::kTexture,
        mean([&](int x, int y) { return step(x, y) >= 6 && step(x, y) <= 60; }));
    set(RegionStatistic::kEdge, mean([&](int x, int y) { return step(x, y) > 96; }));
    set(RegionStatistic::kSharp, mean([&](int x, int y) { return step(x, y) > 200; }));
    set(RegionStatistic::kSaturation, mean([&](int x, int y) { return chroma(x, y) / 255.0; }));
    set(RegionStatistic::kSaturated, mean([&](int x, int y) { return chroma(x, y) > 100; }));
    set(RegionStatistic::kGray, mean([&](int x, int y) { return chroma(x, y) < 6; }));
    const double light = mean(luma);
    set(RegionStatistic::kLightness, light / 255);
    set(RegionStatistic::kContrast,
        std::sqrt(mean([&](int x, int y) { return std::pow(luma(x, y) - light, 2); })) / 128);
    for (std::size_t h = 0; h < kHues; ++h) {
      statistics[static_cast<std::size_t>(RegionStatistic::kRed) + h] =
          static_cast<float>(mean([&](int x, int y) {
            const double turned = std::floor(hue(x, y) + 0.5);
            const bool same = static_cast<std::size_t>(turned < 0 ? turned + kHues : turned) == h;
            return same ? chroma(x, y) / 255.0 : 0.0;
          }));
    }
    std::vector<double> colours(kColours, 0);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const double w = whole ? 1 : within ? weight_at(x, y) : 1 - weight_at(x, y);
        colours[colour_of(value(0, x, y), value(1, x, y), value(2, x, y))] += w / sum;
      }
    }
    std::sort(colours.begin(), colours.end(), std::greater<>());
    double entropy = 0;
    double seen = 0;
    for (std::size_t i = 0; i < kColours; ++i) {
      if (colours[i] > 0) entropy -= colours[i] * std::log2(colours[i]);
      seen += colours[i];
      if (i == 0) set(RegionStatistic::kColour1, seen);
      if (i == 3) set(RegionStatistic::kColour4, seen);
      if (i == 15) set(RegionStatistic::kColour16, seen);
    }
    set(RegionStatistic::kEntropy, entropy / 12);
    return statistics;
  };
  return {described_under(true), described_under(false)};
}

}  // namespace cutout::test
