#include "classify/statistics.h"

#include <algorithm>
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

bool near_median(const Median& median, int r, int g, int b) {
  return std::abs(r - median.value[0]) <= kMaxMedianDistance &&
         std::abs(g - median.value[1]) <= kMaxMedianDistance &&
         std::abs(b - median.value[2]) <= kMaxMedianDistance;
}

CUTOUT_SIMD int count_near(const std::uint8_t* __restrict r, const std::uint8_t* __restrict g,
                           const std::uint8_t* __restrict b, int side, const Median& median) {
  int near = 0;
  for (int x = 0; x < side; ++x) {
    near += (std::abs(r[x] - median.value[0]) <= kMaxMedianDistance ? 1 : 0) &
            (std::abs(g[x] - median.value[1]) <= kMaxMedianDistance ? 1 : 0) &
            (std::abs(b[x] - median.value[2]) <= kMaxMedianDistance ? 1 : 0);
  }
  return near;
}

/// Calls visit(r, g, b) for every pixel of the border.
template <typename Visit>
void each_border_pixel(const Thumbnail& thumbnail, Visit&& visit) {
  const int border = border_of(thumbnail.side);
  for (int y = 0; y < thumbnail.side; ++y) {
    const bool whole = y < border || y >= thumbnail.side - border;
    const std::uint8_t* const r = thumbnail.row(0, y);
    const std::uint8_t* const g = thumbnail.row(1, y);
    const std::uint8_t* const b = thumbnail.row(2, y);
    for (int x = 0; x < thumbnail.side; ++x) {
      if (!whole && x == border) x = thumbnail.side - border;
      visit(r[x], g[x], b[x]);
    }
  }
}

/// Median of each channel over the border's pixels.
Median border_median(const Thumbnail& thumbnail, std::int64_t& pixels) {
  std::vector<std::int64_t> counts(3 * 256, 0);
  pixels = 0;
  each_border_pixel(thumbnail, [&](int r, int g, int b) {
    ++counts[static_cast<std::size_t>(r)];
    ++counts[static_cast<std::size_t>(256 + g)];
    ++counts[static_cast<std::size_t>(512 + b)];
    ++pixels;
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

/// Weighted sums over pixels; `weight` counts them.
struct Sums {
  std::int64_t weight = 0;
  std::int64_t flat = 0;
  std::int64_t smooth = 0;
  std::int64_t texture = 0;
  std::int64_t edge = 0;
  std::int64_t sharp = 0;
  std::int64_t chroma = 0;
  std::int64_t saturated = 0;
  std::int64_t gray = 0;
  std::int64_t luma = 0;
  std::int64_t luma_squared = 0;
  std::int64_t hues[kHues] = {};
  std::vector<std::int64_t> colours = std::vector<std::int64_t>(kColours, 0);
};

struct Row {
  const std::uint8_t* r;
  const std::uint8_t* g;
  const std::uint8_t* b;
};

Row row_of(const Thumbnail& thumbnail, int y) {
  return {thumbnail.row(0, y), thumbnail.row(1, y), thumbnail.row(2, y)};
}

/// The maximum number of pixels of one add_pixels(): the sums of their weighted squares of luma
/// fit into 32 bits.
constexpr int kRun = 256;

/// Adds up to kRun pixels to everything but the colours, unweighted to `all`, weighted to `inside`.
/// `right` starts a pixel later, `below` is the next row (the same row for the last).
CUTOUT_SIMD void add_pixels(Row row, Row right, Row below, const std::uint8_t* __restrict weights,
                            int n, Sums& all, Sums& inside) {
  std::uint32_t weight = 0;
  std::uint32_t flat[2] = {};
  std::uint32_t smooth[2] = {};
  std::uint32_t texture[2] = {};
  std::uint32_t edge[2] = {};
  std::uint32_t sharp[2] = {};
  std::uint32_t chroma_sum[2] = {};
  std::uint32_t saturated[2] = {};
  std::uint32_t gray[2] = {};
  std::uint32_t luma_sum[2] = {};
  std::uint32_t luma_squared[2] = {};
  std::uint32_t red[2] = {};
  std::uint32_t yellow[2] = {};
  std::uint32_t green[2] = {};
  std::uint32_t cyan[2] = {};
  std::uint32_t blue[2] = {};
  std::uint32_t magenta[2] = {};
  const auto count = [](std::uint32_t(&sums)[2], bool counts, std::uint32_t value,
                        std::uint32_t weighted) {
    sums[0] += counts ? value : 0;
    sums[1] += counts ? weighted : 0;
  };
  for (int x = 0; x < n; ++x) {
    const int r = row.r[x];
    const int g = row.g[x];
    const int b = row.b[x];
    const std::uint32_t w = weights[x];
    const int across =
        std::abs(r - right.r[x]) + std::abs(g - right.g[x]) + std::abs(b - right.b[x]);
    const int down = std::abs(r - below.r[x]) + std::abs(g - below.g[x]) + std::abs(b - below.b[x]);
    const int step = across > down ? across : down;
    const int most = r > g ? (r > b ? r : b) : (g > b ? g : b);
    const int least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    const int chroma = most - least;
    const int hue = hue_of(r, g, b, most, chroma);
    const auto luma = static_cast<std::uint32_t>(luma_of(r, g, b));
    const auto colour = static_cast<std::uint32_t>(chroma);
    const std::uint32_t coloured = w * colour;
    weight += w;
    count(flat, step <= kMaxFlat, 1, w);
    count(smooth, step <= kMaxSmooth, 1, w);
    count(texture, step >= kMinTexture && step <= kMaxTexture, 1, w);
    count(edge, step > kEdgeThreshold, 1, w);
    count(sharp, step > kSharpThreshold, 1, w);
    count(chroma_sum, true, colour, coloured);
    count(saturated, chroma > kSaturatedThreshold, 1, w);
    count(gray, chroma < kGrayThreshold, 1, w);
    count(luma_sum, true, luma, w * luma);
    count(luma_squared, true, luma * luma, w * luma * luma);
    count(red, hue == 0, colour, coloured);
    count(yellow, hue == 1, colour, coloured);
    count(green, hue == 2, colour, coloured);
    count(cyan, hue == 3, colour, coloured);
    count(blue, hue == 4, colour, coloured);
    count(magenta, hue == 5, colour, coloured);
  }
  all.weight += n;
  inside.weight += weight;
  for (const int which : {0, 1}) {
    Sums& sums = which == 0 ? all : inside;
    sums.flat += flat[which];
    sums.smooth += smooth[which];
    sums.texture += texture[which];
    sums.edge += edge[which];
    sums.sharp += sharp[which];
    sums.chroma += chroma_sum[which];
    sums.saturated += saturated[which];
    sums.gray += gray[which];
    sums.luma += luma_sum[which];
    sums.luma_squared += luma_squared[which];
    sums.hues[0] += red[which];
    sums.hues[1] += yellow[which];
    sums.hues[2] += green[which];
    sums.hues[3] += cyan[which];
    sums.hues[4] += blue[which];
    sums.hues[5] += magenta[which];
  }
}

/// A row from column x on.
Row shifted(const Row& row, int x) { return {row.r + x, row.g + x, row.b + x}; }

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

void add(const Sums& part, Sums& sums) {
  sums.weight += part.weight;
  sums.flat += part.flat;
  sums.smooth += part.smooth;
  sums.texture += part.texture;
  sums.edge += part.edge;
  sums.sharp += part.sharp;
  sums.chroma += part.chroma;
  sums.saturated += part.saturated;
  sums.gray += part.gray;
  sums.luma += part.luma;
  sums.luma_squared += part.luma_squared;
  for (std::size_t h = 0; h < kHues; ++h) sums.hues[h] += part.hues[h];
  for (std::size_t c = 0; c < kColours; ++c) sums.colours[c] += part.colours[c];
}

/// Sums outside: all pixels with weight kFullWeight minus those inside.
Sums remainder(const Sums& all, const Sums& inside) {
  Sums rest;
  const auto less = [](std::int64_t whole, std::int64_t part) {
    return kFullWeight * whole - part;
  };
  rest.weight = less(all.weight, inside.weight);
  rest.flat = less(all.flat, inside.flat);
  rest.smooth = less(all.smooth, inside.smooth);
  rest.texture = less(all.texture, inside.texture);
  rest.edge = less(all.edge, inside.edge);
  rest.sharp = less(all.sharp, inside.sharp);
  rest.chroma = less(all.chroma, inside.chroma);
  rest.saturated = less(all.saturated, inside.saturated);
  rest.gray = less(all.gray, inside.gray);
  rest.luma = less(all.luma, inside.luma);
  rest.luma_squared = less(all.luma_squared, inside.luma_squared);
  for (std::size_t h = 0; h < kHues; ++h) rest.hues[h] = less(all.hues[h], inside.hues[h]);
  std::transform(all.colours.begin(), all.colours.end(), inside.colours.begin(),
                 rest.colours.begin(), less);
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

RegionStatistics described(Sums sums) {
  RegionStatistics statistics{};
  const auto weight = static_cast<double>(sums.weight);
  const auto set = [&](RegionStatistic which, std::int64_t part, double scale) {
    at(statistics, which) = share_of(part, weight * scale);
  };
  set(RegionStatistic::kFlat, sums.flat, 1);
  set(RegionStatistic::kSmooth, sums.smooth, 1);
  set(RegionStatistic::kTexture, sums.texture, 1);
  set(RegionStatistic::kEdge, sums.edge, 1);
  set(RegionStatistic::kSharp, sums.sharp, 1);
  set(RegionStatistic::kSaturation, sums.chroma, 255);
  set(RegionStatistic::kSaturated, sums.saturated, 1);
  set(RegionStatistic::kGray, sums.gray, 1);
  set(RegionStatistic::kLightness, sums.luma, 255);
  const double mean = static_cast<double>(sums.luma) / weight;
  const double square = static_cast<double>(sums.luma_squared) / weight;
  at(statistics, RegionStatistic::kContrast) =
      static_cast<float>(std::sqrt(std::max(square - mean * mean, 0.0)) / 128);
  for (std::size_t h = 0; h < kHues; ++h) {
    statistics[static_cast<std::size_t>(RegionStatistic::kRed) + h] =
        share_of(sums.hues[h], weight * 255);
  }
  palette(sums.colours, weight, statistics);
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
  each_border_pixel(thumbnail,
                    [&](int r, int g, int b) { uniform += near_median(median, r, g, b) ? 1 : 0; });
  std::int64_t background = 0;
  for (int y = 0; y < thumbnail.side; ++y) {
    const Row row = row_of(thumbnail, y);
    background += count_near(row.r, row.g, row.b, thumbnail.side, median);
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
  regions.inside = described(is_seen(inside.weight, pixels) ? inside : all);
  regions.outside = described(is_seen(outside.weight, pixels) ? std::move(outside) : all);
  return regions;
}

}  // namespace cutout
