#include "classify/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr int kSampleSide = 512;
constexpr std::size_t kColours = 4096;
constexpr int kMaxFlat = 2;
constexpr int kMaxSmooth = 6;
constexpr int kMinTexture = 6;
constexpr int kMaxTexture = 60;
constexpr int kEdgeThreshold = 96;
constexpr int kSharpThreshold = 200;
constexpr int kSaturatedThreshold = 100;
constexpr int kGrayThreshold = 6;
constexpr int kMaxMedianDistance = 16;
constexpr int kHues = 6;
constexpr std::size_t kRows = 64;  // in a range of work
constexpr int kFullWeight = 255;   // weight of a pixel that lies wholly in a region
constexpr double kRegionShareDivisor =
    2048;  // a region has at least 1 / kRegionShareDivisor of the image's pixels

float& at(Statistics& statistics, Statistic which) {
  return statistics[static_cast<std::size_t>(which)];
}

float& at(RegionStatistics& statistics, RegionStatistic which) {
  return statistics[static_cast<std::size_t>(which)];
}

/// Width of the image's border: 2 % of its side.
int border_of(int side) { return std::max(1, side / 50); }

/// Luma in integers (weights of BT.601).
CUTOUT_INLINE int luma_of(int r, int g, int b) { return (77 * r + 150 * g + 29 * b + 128) >> 8; }

/// Which of the six hues; 0, red, for a gray.
CUTOUT_INLINE int hue_of(int r, int g, int b, int most, int chroma) {
  const bool red = most == r;
  const bool green = most == g;
  const int centre = red ? 0 : green ? 2 : 4;
  const int lean = red ? g - b : green ? b - r : r - g;
  const int hue = centre + (2 * lean >= chroma ? 1 : 0) - (2 * lean < -chroma ? 1 : 0);
  return hue < 0 ? hue + kHues : hue;
}

std::size_t colour_of(int r, int g, int b) {
  return static_cast<std::size_t>((r >> 4) << 8 | (g >> 4) << 4 | b >> 4);
}

struct Median {
  int value[3];
};

struct Row {
  const std::uint8_t* r;
  const std::uint8_t* g;
  const std::uint8_t* b;
};

Row row_of(const Thumbnail& thumbnail, int y) {
  return {thumbnail.row(0, y), thumbnail.row(1, y), thumbnail.row(2, y)};
}

/// A row from column x on.
Row shifted(const Row& row, int x) { return {row.r + x, row.g + x, row.b + x}; }

/// How many of n pixels are near the median.
CUTOUT_SIMD int count_near(Row row, int n, const Median& median) {
  const std::uint8_t* __restrict r = row.r;
  const std::uint8_t* __restrict g = row.g;
  const std::uint8_t* __restrict b = row.b;
  int near = 0;
  for (int x = 0; x < n; ++x) {
    near += (std::abs(r[x] - median.value[0]) <= kMaxMedianDistance ? 1 : 0) &
            (std::abs(g[x] - median.value[1]) <= kMaxMedianDistance ? 1 : 0) &
            (std::abs(b[x] - median.value[2]) <= kMaxMedianDistance ? 1 : 0);
  }
  return near;
}

/// Calls visit(row, n) for the first n pixels of rows that cover the border.
template <typename Visit>
void each_border_run(const Thumbnail& thumbnail, Visit&& visit) {
  const int side = thumbnail.side;
  const int border = border_of(side);
  for (int y = 0; y < side; ++y) {
    const Row row = row_of(thumbnail, y);
    const bool whole = y < border || y >= side - border;
    visit(row, whole ? side : border);
    if (!whole) visit(shifted(row, side - border), border);
  }
}

/// Median of each channel over the border's pixels.
Median border_median(const Thumbnail& thumbnail, std::int64_t& pixels) {
  std::vector<std::int64_t> counts(3 * 256, 0);
  pixels = 0;
  each_border_run(thumbnail, [&](const Row& row, int n) {
    for (int x = 0; x < n; ++x) {
      ++counts[row.r[x]];
      ++counts[256U + row.g[x]];
      ++counts[512U + row.b[x]];
    }
    pixels += n;
  });
  Median median{};
  for (int c = 0; c < 3; ++c) {
    std::int64_t seen = 0;
    for (int v = 0; v < 256; ++v) {
      seen += counts[static_cast<std::size_t>(256 * c + v)];
      if (seen * 2 >= pixels) {
        median.value[c] = v;
        break;
      }
    }
  }
  return median;
}

void describe_median(const Median& median, Statistics& statistics) {
  const auto [least, most] = std::minmax({median.value[0], median.value[1], median.value[2]});
  at(statistics, Statistic::kBorderLight) = static_cast<float>(least) / 255.0F;
  at(statistics, Statistic::kBorderDark) = 1.0F - static_cast<float>(most) / 255.0F;
}

float share_of(std::int64_t part, double whole) {
  return static_cast<float>(static_cast<double>(part) / whole);
}

/// What is summed over pixels; of the hues, the chroma of the pixels that have it.
enum Sum : std::size_t {
  kWeightSum,
  kFlatSum,
  kSmoothSum,
  kTextureSum,
  kEdgeSum,
  kSharpSum,
  kChromaSum,
  kSaturatedSum,
  kGraySum,
  kLumaSum,
  kLumaSquaredSum,
  kHueSums,  // kHues of them
  kSumCount = kHueSums + kHues,
};

/// Weighted sums over pixels, and the weights of their colours.
struct Sums {
  std::array<std::int64_t, kSumCount> sums{};
  std::vector<std::int64_t> colours = std::vector<std::int64_t>(kColours, 0);

  [[nodiscard]] std::int64_t weight() const { return sums[kWeightSum]; }
};

/// The maximum number of pixels of one add_pixels(): the sums of their weighted squares of luma
/// fit into 32 bits.
constexpr int kRun = 256;

/// The sums of one run of pixels, each pixel counted once and counted with its weight.
struct RunSums {
  std::uint32_t all[kSumCount] = {};
  std::uint32_t weighted[kSumCount] = {};

  CUTOUT_INLINE void add(std::size_t which, bool counts, std::uint32_t value,
                         std::uint32_t with_weight) {
    all[which] += counts ? value : 0;
    weighted[which] += counts ? with_weight : 0;
  }
};

/// Adds what one pixel counts for. `right` and `below` are the pixels that its step is measured to.
CUTOUT_INLINE void add_pixel(const Row& row, const Row& right, const Row& below, int x,
                             std::uint32_t w, RunSums& run) {
  const int r = row.r[x];
  const int g = row.g[x];
  const int b = row.b[x];
  const int across = std::abs(r - right.r[x]) + std::abs(g - right.g[x]) + std::abs(b - right.b[x]);
  const int down = std::abs(r - below.r[x]) + std::abs(g - below.g[x]) + std::abs(b - below.b[x]);
  const int step = across > down ? across : down;
  const int most = r > g ? (r > b ? r : b) : (g > b ? g : b);
  const int least = r < g ? (r < b ? r : b) : (g < b ? g : b);
  const int chroma = most - least;
  const int hue = hue_of(r, g, b, most, chroma);
  const auto luma = static_cast<std::uint32_t>(luma_of(r, g, b));
  const auto colour = static_cast<std::uint32_t>(chroma);
  run.add(kWeightSum, true, 1, w);
  run.add(kFlatSum, step <= kMaxFlat, 1, w);
  run.add(kSmoothSum, step <= kMaxSmooth, 1, w);
  run.add(kTextureSum, step >= kMinTexture && step <= kMaxTexture, 1, w);
  run.add(kEdgeSum, step > kEdgeThreshold, 1, w);
  run.add(kSharpSum, step > kSharpThreshold, 1, w);
  run.add(kChromaSum, true, colour, w * colour);
  run.add(kSaturatedSum, chroma > kSaturatedThreshold, 1, w);
  run.add(kGraySum, chroma < kGrayThreshold, 1, w);
  run.add(kLumaSum, true, luma, w * luma);
  run.add(kLumaSquaredSum, true, luma * luma, w * luma * luma);
#pragma GCC unroll 6
  for (int h = 0; h < kHues; ++h)
    run.add(kHueSums + static_cast<std::size_t>(h), hue == h, colour, w * colour);
}

/// Adds up to kRun pixels to everything but the colours, unweighted to `all`, weighted to `inside`.
/// `right` starts a pixel later, `below` is the next row (the same row for the last).
CUTOUT_SIMD void add_pixels(Row row, Row right, Row below, const std::uint8_t* __restrict weights,
                            int n, Sums& all, Sums& inside) {
  RunSums run;
  for (int x = 0; x < n; ++x) add_pixel(row, right, below, x, weights[x], run);
#pragma GCC unroll 17
  for (std::size_t which = 0; which < kSumCount; ++which) {
    all.sums[which] += run.all[which];
    inside.sums[which] += run.weighted[which];
  }
}

/// Adds a row; `line` are its weights.
void add_row(const Thumbnail& thumbnail, int y, std::span<const std::uint8_t> line, Sums& all,
             Sums& inside) {
  const int side = thumbnail.side;
  const int last = side - 1;  // has no right neighbour
  const Row row = row_of(thumbnail, y);
  const Row below = row_of(thumbnail, std::min(y + 1, last));
  for (int x = 0; x < last; x += kRun) {
    const int n = std::min(kRun, last - x);
    add_pixels(shifted(row, x), shifted(row, x + 1), shifted(below, x), line.data() + x, n, all,
               inside);
  }
  const Row end = shifted(row, last);
  add_pixels(end, end, shifted(below, last), line.data() + last, 1, all, inside);
  for (int x = 0; x < side; ++x) {
    const std::size_t colour = colour_of(row.r[x], row.g[x], row.b[x]);
    ++all.colours[colour];
    inside.colours[colour] += line[static_cast<std::size_t>(x)];
  }
}

void add(const Sums& part, Sums& to) {
  for (std::size_t i = 0; i < kSumCount; ++i) to.sums[i] += part.sums[i];
  for (std::size_t c = 0; c < kColours; ++c) to.colours[c] += part.colours[c];
}

/// Sums outside: all pixels with weight kFullWeight minus those inside.
Sums remainder(const Sums& all, const Sums& inside) {
  Sums rest;
  const auto less = [](std::int64_t whole, std::int64_t part) {
    return kFullWeight * whole - part;
  };
  std::ranges::transform(all.sums, inside.sums, rest.sums.begin(), less);
  std::ranges::transform(all.colours, inside.colours, rest.colours.begin(), less);
  return rest;
}

/// Shares of the most frequent colours and the entropy. Reorders `counts`.
void palette(std::vector<std::int64_t>& counts, double weight, RegionStatistics& statistics) {
  double entropy = 0;
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / weight;
    entropy -= share * std::log2(share);
  }
  at(statistics, RegionStatistic::kEntropy) = static_cast<float>(entropy / 12);
  std::partial_sort(counts.begin(), counts.begin() + 16, counts.end(), std::greater<>());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    sum += counts[i];
    if (i == 0) at(statistics, RegionStatistic::kColour1) = share_of(sum, weight);
    if (i == 3) at(statistics, RegionStatistic::kColour4) = share_of(sum, weight);
    if (i == 15) at(statistics, RegionStatistic::kColour16) = share_of(sum, weight);
  }
}

RegionStatistics described(Sums all) {
  /// A statistic that is a mean: its sum by the weight and by `unit`.
  struct Mean {
    RegionStatistic which;
    Sum sum;
    double unit;
  };
  static constexpr Mean kMeans[] = {
      {RegionStatistic::kFlat, kFlatSum, 1},
      {RegionStatistic::kSmooth, kSmoothSum, 1},
      {RegionStatistic::kTexture, kTextureSum, 1},
      {RegionStatistic::kEdge, kEdgeSum, 1},
      {RegionStatistic::kSharp, kSharpSum, 1},
      {RegionStatistic::kSaturation, kChromaSum, 255},
      {RegionStatistic::kSaturated, kSaturatedSum, 1},
      {RegionStatistic::kGray, kGraySum, 1},
      {RegionStatistic::kLightness, kLumaSum, 255},
  };
  RegionStatistics statistics{};
  const auto& sums = all.sums;
  const auto weight = static_cast<double>(all.weight());
  for (const auto& [which, sum, unit] : kMeans)
    at(statistics, which) = share_of(sums[sum], weight * unit);
  const double mean = static_cast<double>(sums[kLumaSum]) / weight;
  const double square = static_cast<double>(sums[kLumaSquaredSum]) / weight;
  at(statistics, RegionStatistic::kContrast) =
      static_cast<float>(std::sqrt(std::max(square - mean * mean, 0.0)) / 128);
  for (std::size_t h = 0; h < kHues; ++h) {
    statistics[static_cast<std::size_t>(RegionStatistic::kRed) + h] =
        share_of(sums[kHueSums + h], weight * 255);
  }
  palette(all.colours, weight, statistics);
  return statistics;
}

/// A weight in steps of 1 / 255.
std::uint8_t step_of(float weight) {
  return static_cast<std::uint8_t>(std::clamp(weight, 0.0F, 1.0F) * kFullWeight + 0.5F);
}

/// Whether a region of this weight is large enough for statistics of its own.
bool is_seen(std::int64_t weight, double pixels) {
  return static_cast<double>(weight) * kRegionShareDivisor >= pixels * kFullWeight;
}

CUTOUT_INLINE float clamped(float value) {
  return value < 0.0F ? 0.0F : value > 255.0F ? 255.0F : value;
}

/// Rounded means of 2 x 2 values.
CUTOUT_SIMD void halve_row(const float* __restrict upper, const float* __restrict lower,
                           std::size_t n, std::uint8_t* __restrict to) {
  for (std::size_t x = 0; x < n; ++x) {
    const float sum = clamped(upper[2 * x]) + clamped(upper[2 * x + 1]) + clamped(lower[2 * x]) +
                      clamped(lower[2 * x + 1]);
    to[x] = static_cast<std::uint8_t>(sum * 0.25F + 0.5F);
  }
}

}  // namespace

Thumbnail make_thumbnail(std::span<const float> planes, int side) {
  Thumbnail thumbnail{side / 2, {}};
  const auto n = static_cast<std::size_t>(thumbnail.side);
  const auto stride = static_cast<std::size_t>(side);
  thumbnail.planes.resize(3 * n * n);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < n; ++y) {
      const float* const upper = planes.data() + (c * stride + 2 * y) * stride;
      halve_row(upper, upper + stride, n, thumbnail.planes.data() + (c * n + y) * n);
    }
  }
  return thumbnail;
}

void alpha_statistics(ConstImageView rgba, Statistics& statistics) {
  const int rows = std::min(rgba.height, kSampleSide);
  const int columns = std::min(rgba.width, kSampleSide);
  std::vector<std::size_t> offsets(static_cast<std::size_t>(columns));
  for (std::size_t j = 0; j < offsets.size(); ++j) {
    offsets[j] = j * static_cast<std::size_t>(rgba.width) / offsets.size() * 4 + 3;
  }
  std::int64_t transparent = 0;
  std::int64_t soft = 0;
  for (int i = 0; i < rows; ++i) {
    const std::uint8_t* const row =
        rgba.row(static_cast<int>(static_cast<std::int64_t>(i) * rgba.height / rows));
    for (const std::size_t offset : offsets) {
      const std::uint8_t alpha = row[offset];
      transparent += alpha == 0 ? 1 : 0;
      soft += alpha != 0 && alpha != 255 ? 1 : 0;
    }
  }
  const double pixels = static_cast<double>(rows) * columns;
  at(statistics, Statistic::kTransparent) = share_of(transparent, pixels);
  at(statistics, Statistic::kSoft) = share_of(soft, pixels);
}

void border_statistics(const Thumbnail& thumbnail, Statistics& statistics) {
  std::int64_t border = 0;
  const Median median = border_median(thumbnail, border);
  std::int64_t uniform = 0;
  each_border_run(thumbnail, [&](const Row& row, int n) { uniform += count_near(row, n, median); });
  std::int64_t background = 0;
  for (int y = 0; y < thumbnail.side; ++y) {
    background += count_near(row_of(thumbnail, y), thumbnail.side, median);
  }
  describe_median(median, statistics);
  at(statistics, Statistic::kBorderUniform) = share_of(uniform, static_cast<double>(border));
  at(statistics, Statistic::kBackground) =
      share_of(background, static_cast<double>(thumbnail.side) * thumbnail.side);
}

Regions region_statistics(const Thumbnail& thumbnail, std::span<const float> weights,
                          ThreadPool& pool) {
  const int side = thumbnail.side;
  const auto n = static_cast<std::size_t>(side);
  std::mutex mutex;
  Sums all;
  Sums inside;
  pool.parallel_for(n, kRows, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> line(n);
    Sums part_all;
    Sums part_inside;
    for (std::size_t y = begin; y < end; ++y) {
      const auto from = weights.subspan(y * n, n);
      std::transform(from.begin(), from.end(), line.begin(), step_of);
      add_row(thumbnail, static_cast<int>(y), line, part_all, part_inside);
    }
    const std::lock_guard lock(mutex);
    add(part_all, all);
    add(part_inside, inside);
  });
  const double pixels = static_cast<double>(side) * side;
  Sums outside = remainder(all, inside);
  Regions regions;
  regions.inside = described(is_seen(inside.weight(), pixels) ? inside : all);
  regions.outside = described(is_seen(outside.weight(), pixels) ? std::move(outside) : all);
  return regions;
}

}  // namespace cutout
