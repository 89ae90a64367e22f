#include "classify/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr int kSampleSide = 512;
constexpr std::size_t kColours = 4096;
constexpr int kFlatMost = 2;
constexpr int kTextureLeast = 6;
constexpr int kTextureMost = 60;
constexpr int kEdgeOver = 96;
constexpr int kSaturatedOver = 100;
constexpr int kGrayUnder = 6;
constexpr int kNear = 16;

float& at(Statistics& statistics, Statistic which) {
  return statistics[static_cast<std::size_t>(which)];
}

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F) + 0.5F);
}

/// Rows and columns of the outermost 2 %.
int border_of(int side) { return std::max(1, side / 50); }

/// Planes of bytes and what lies in them.
struct Bytes {
  std::vector<std::uint8_t> data;
  std::size_t plane;
  int side;

  Bytes(std::span<const float> planes, int given_side)
      : data(planes.size()), plane(planes.size() / 3), side(given_side) {
    std::transform(planes.begin(), planes.end(), data.begin(), to_byte);
  }

  [[nodiscard]] const std::uint8_t* row(std::size_t channel, int y) const {
    return data.data() + channel * plane +
           static_cast<std::size_t>(y) * static_cast<std::size_t>(side);
  }
};

/// What is counted pixel by pixel.
struct Counts {
  std::int64_t flat = 0;
  std::int64_t texture = 0;
  std::int64_t edge = 0;
  std::int64_t saturated = 0;
  std::int64_t gray = 0;
  std::int64_t background = 0;
  std::int64_t chroma = 0;        // sum of max - min
  std::int64_t luma = 0;          // sum of the luma in 1/256
  std::int64_t luma_squared = 0;  // of the luma in 1/4
};

/// Luma in 1/256 (weights of BT.601).
inline int luma_of(int r, int g, int b) { return 77 * r + 150 * g + 29 * b; }

struct Median {
  int value[3];
};

/// Counts over one row; `below` repeats the row where there is none.
CUTOUT_SIMD void count_row(const std::uint8_t* __restrict r, const std::uint8_t* __restrict g,
                           const std::uint8_t* __restrict b, const std::uint8_t* __restrict rb,
                           const std::uint8_t* __restrict gb, const std::uint8_t* __restrict bb,
                           int side, const Median& median, Counts& counts) {
  int flat = 0;
  int texture = 0;
  int edge = 0;
  int saturated = 0;
  int gray = 0;
  int background = 0;
  int chroma = 0;
  int luma = 0;
  int luma_squared = 0;
  for (int x = 0; x < side; ++x) {
    const int right = x + 1 < side ? x + 1 : x;
    const int across =
        std::abs(r[x] - r[right]) + std::abs(g[x] - g[right]) + std::abs(b[x] - b[right]);
    const int down = std::abs(r[x] - rb[x]) + std::abs(g[x] - gb[x]) + std::abs(b[x] - bb[x]);
    const int step = across > down ? across : down;
    flat += step <= kFlatMost ? 1 : 0;
    texture += step >= kTextureLeast && step <= kTextureMost ? 1 : 0;
    edge += step > kEdgeOver ? 1 : 0;
    const int most = std::max(std::max(r[x], g[x]), b[x]);
    const int least = std::min(std::min(r[x], g[x]), b[x]);
    chroma += most - least;
    saturated += most - least > kSaturatedOver ? 1 : 0;
    gray += most - least < kGrayUnder ? 1 : 0;
    const bool near = std::abs(r[x] - median.value[0]) <= kNear &&
                      std::abs(g[x] - median.value[1]) <= kNear &&
                      std::abs(b[x] - median.value[2]) <= kNear;
    background += near ? 1 : 0;
    const int value = luma_of(r[x], g[x], b[x]);
    luma += value;
    luma_squared += (value >> 6) * (value >> 6) >> 4;
  }
  counts.flat += flat;
  counts.texture += texture;
  counts.edge += edge;
  counts.saturated += saturated;
  counts.gray += gray;
  counts.background += background;
  counts.chroma += chroma;
  counts.luma += luma;
  counts.luma_squared += luma_squared;
}

bool in_border(int x, int y, int side, int border) {
  return x < border || y < border || x >= side - border || y >= side - border;
}

/// Calls visit(r, g, b) for every pixel of the border.
template <typename Visit>
void each_border_pixel(const Bytes& bytes, Visit&& visit) {
  const int border = border_of(bytes.side);
  for (int y = 0; y < bytes.side; ++y) {
    const bool whole = y < border || y >= bytes.side - border;
    const std::uint8_t* const r = bytes.row(0, y);
    const std::uint8_t* const g = bytes.row(1, y);
    const std::uint8_t* const b = bytes.row(2, y);
    for (int x = 0; x < bytes.side; ++x) {
      if (!whole && x == border) x = bytes.side - border;
      visit(r[x], g[x], b[x]);
    }
  }
}

/// Lower median of each channel of the border, and how many pixels the border has.
Median border_median(const Bytes& bytes, std::int64_t& pixels) {
  std::vector<std::int64_t> histogram(3 * 256, 0);
  pixels = 0;
  each_border_pixel(bytes, [&](int r, int g, int b) {
    ++histogram[static_cast<std::size_t>(r)];
    ++histogram[256 + static_cast<std::size_t>(g)];
    ++histogram[512 + static_cast<std::size_t>(b)];
    ++pixels;
  });
  Median median{};
  for (std::size_t c = 0; c < 3; ++c) {
    std::int64_t seen = 0;
    for (int v = 0; v < 256; ++v) {
      seen += histogram[c * 256 + static_cast<std::size_t>(v)];
      if (seen * 2 >= pixels) {
        median.value[c] = v;
        break;
      }
    }
  }
  return median;
}

bool near_median(const Median& median, int r, int g, int b) {
  return std::abs(r - median.value[0]) <= kNear && std::abs(g - median.value[1]) <= kNear &&
         std::abs(b - median.value[2]) <= kNear;
}

std::size_t colour_of(int r, int g, int b) {
  return static_cast<std::size_t>((r >> 4) << 8 | (g >> 4) << 4 | b >> 4);
}

/// Shares of the commonest colours and the entropy; takes the counts apart.
void palette(std::vector<std::int64_t>& counts, double pixels, Statistics& statistics) {
  double entropy = 0;
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / pixels;
    entropy -= share * std::log2(share);
  }
  at(statistics, Statistic::kEntropy) = static_cast<float>(entropy / 12);
  std::partial_sort(counts.begin(), counts.begin() + 16, counts.end(), std::greater<>());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    sum += counts[i];
    const auto share = static_cast<float>(static_cast<double>(sum) / pixels);
    if (i == 0) at(statistics, Statistic::kColour1) = share;
    if (i == 3) at(statistics, Statistic::kColour4) = share;
    if (i == 15) at(statistics, Statistic::kColour16) = share;
  }
}

void describe_median(const Median& median, Statistics& statistics) {
  const auto [least, most] = std::minmax({median.value[0], median.value[1], median.value[2]});
  at(statistics, Statistic::kBorderLight) = static_cast<float>(least) / 255.0F;
  at(statistics, Statistic::kBorderDark) = 1.0F - static_cast<float>(most) / 255.0F;
}

/// Luma as the fast version squares it: in quarters, whole.
double coarse_square(int luma) { return static_cast<double>((luma >> 6) * (luma >> 6) >> 4); }

}  // namespace

void alpha_statistics(ConstImageView rgba, Statistics& statistics) {
  const int rows = std::min(rgba.height, kSampleSide);
  const int columns = std::min(rgba.width, kSampleSide);
  std::int64_t transparent = 0;
  std::int64_t soft = 0;
  for (int i = 0; i < rows; ++i) {
    const std::uint8_t* const row =
        rgba.row(static_cast<int>(static_cast<std::int64_t>(i) * rgba.height / rows));
    for (int j = 0; j < columns; ++j) {
      const std::int64_t x = static_cast<std::int64_t>(j) * rgba.width / columns;
      const std::uint8_t alpha = row[x * 4 + 3];
      transparent += alpha == 0 ? 1 : 0;
      soft += alpha != 0 && alpha != 255 ? 1 : 0;
    }
  }
  const double pixels = static_cast<double>(rows) * columns;
  at(statistics, Statistic::kTransparent) =
      static_cast<float>(static_cast<double>(transparent) / pixels);
  at(statistics, Statistic::kSoft) = static_cast<float>(static_cast<double>(soft) / pixels);
}

void colour_statistics(std::span<const float> planes, int side, Statistics& statistics) {
  const Bytes bytes(planes, side);
  const auto pixels = static_cast<double>(bytes.plane);
  std::int64_t border = 0;
  const Median median = border_median(bytes, border);
  std::int64_t uniform = 0;
  each_border_pixel(bytes,
                    [&](int r, int g, int b) { uniform += near_median(median, r, g, b) ? 1 : 0; });

  Counts counts;
  std::vector<std::int64_t> colours(kColours, 0);
  for (int y = 0; y < side; ++y) {
    const int below = std::min(y + 1, side - 1);
    const std::uint8_t* const r = bytes.row(0, y);
    const std::uint8_t* const g = bytes.row(1, y);
    const std::uint8_t* const b = bytes.row(2, y);
    count_row(r, g, b, bytes.row(0, below), bytes.row(1, below), bytes.row(2, below), side, median,
              counts);
    for (int x = 0; x < side; ++x) ++colours[colour_of(r[x], g[x], b[x])];
  }

  const auto share = [&](Statistic which, std::int64_t count) {
    at(statistics, which) = static_cast<float>(static_cast<double>(count) / pixels);
  };
  share(Statistic::kFlat, counts.flat);
  share(Statistic::kTexture, counts.texture);
  share(Statistic::kEdge, counts.edge);
  share(Statistic::kSaturated, counts.saturated);
  share(Statistic::kGray, counts.gray);
  share(Statistic::kBackground, counts.background);
  palette(colours, pixels, statistics);
  at(statistics, Statistic::kSaturation) =
      static_cast<float>(static_cast<double>(counts.chroma) / pixels / 255);
  at(statistics, Statistic::kBorderUniform) =
      static_cast<float>(static_cast<double>(uniform) / static_cast<double>(border));
  describe_median(median, statistics);
  const double mean = static_cast<double>(counts.luma) / pixels / 256;
  const double square = static_cast<double>(counts.luma_squared) / pixels;
  at(statistics, Statistic::kLightness) = static_cast<float>(mean / 255);
  at(statistics, Statistic::kContrast) =
      static_cast<float>(std::sqrt(std::max(square - mean * mean, 0.0)) / 128);
}

void colour_statistics_scalar(std::span<const float> planes, int side, Statistics& statistics) {
  const auto n = static_cast<std::size_t>(side);
  const auto value = [&](std::size_t c, int x, int y) {
    return static_cast<int>(
        to_byte(planes[(c * n + static_cast<std::size_t>(y)) * n + static_cast<std::size_t>(x)]));
  };
  const auto average = [&](Statistic which, auto&& of) {
    double sum = 0;
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) sum += static_cast<double>(of(x, y));
    }
    const double mean = sum / static_cast<double>(n * n);
    at(statistics, which) = static_cast<float>(mean);
    return mean;
  };
  const auto step = [&](int x, int y) {
    int across = 0;
    int down = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      across += std::abs(value(c, x, y) - value(c, std::min(x + 1, side - 1), y));
      down += std::abs(value(c, x, y) - value(c, x, std::min(y + 1, side - 1)));
    }
    return std::max(across, down);
  };
  const auto chroma = [&](int x, int y) {
    const auto [least, most] = std::minmax({value(0, x, y), value(1, x, y), value(2, x, y)});
    return most - least;
  };
  average(Statistic::kFlat, [&](int x, int y) { return step(x, y) <= kFlatMost; });
  average(Statistic::kTexture,
          [&](int x, int y) { return step(x, y) >= kTextureLeast && step(x, y) <= kTextureMost; });
  average(Statistic::kEdge, [&](int x, int y) { return step(x, y) > kEdgeOver; });
  average(Statistic::kSaturation, [&](int x, int y) { return chroma(x, y) / 255.0; });
  average(Statistic::kSaturated, [&](int x, int y) { return chroma(x, y) > kSaturatedOver; });
  average(Statistic::kGray, [&](int x, int y) { return chroma(x, y) < kGrayUnder; });

  Median median{};
  std::vector<int> border;
  for (std::size_t c = 0; c < 3; ++c) {
    border.clear();
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        if (in_border(x, y, side, border_of(side))) border.push_back(value(c, x, y));
      }
    }
    std::sort(border.begin(), border.end());
    median.value[c] = border[(border.size() - 1) / 2];
  }
  describe_median(median, statistics);
  const auto near = [&](int x, int y) {
    return near_median(median, value(0, x, y), value(1, x, y), value(2, x, y));
  };
  average(Statistic::kBackground, near);
  double uniform = 0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      if (in_border(x, y, side, border_of(side)) && near(x, y)) ++uniform;
    }
  }
  at(statistics, Statistic::kBorderUniform) =
      static_cast<float>(uniform / static_cast<double>(border.size()));

  std::vector<std::int64_t> colours(kColours, 0);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x)
      ++colours[colour_of(value(0, x, y), value(1, x, y), value(2, x, y))];
  }
  palette(colours, static_cast<double>(n * n), statistics);
  const auto luma = [&](int x, int y) {
    return luma_of(value(0, x, y), value(1, x, y), value(2, x, y));
  };
  const double mean =
      average(Statistic::kLightness, [&](int x, int y) { return luma(x, y) / 65280.0; });
  const double square =
      average(Statistic::kContrast, [&](int x, int y) { return coarse_square(luma(x, y)); });
  at(statistics, Statistic::kContrast) =
      static_cast<float>(std::sqrt(std::max(square - mean * mean * 255 * 255, 0.0)) / 128);
}

}  // namespace cutout
