#include "matte/apply.h"

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/simd.h"
#include "matte/cubic_taps.h"
#include "matte/math/certainty.h"
#include "matte/pixels.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 64;  // rows of the image
constexpr int kSegment = 256;       // pixels classified and written together

/// A row of p enlarged to the image's width, with the range of p for each segment.
struct Row {
  int index = INT_MIN;  // row of p
  std::vector<float> values;
  std::vector<float> low;
  std::vector<float> high;
};

/// Enlarged rows of p, kept while adjacent rows of the image need them.
class RowCache {
 public:
  RowCache(std::span<const float> p, int p_width, const std::vector<Cubic>& columns, Box roi)
      : p_(p), p_width_(static_cast<std::size_t>(p_width)), columns_(columns), roi_(roi) {
    const auto width = static_cast<std::size_t>(roi.width);
    const std::size_t segments = (width + kSegment - 1) / kSegment;
    for (Row& row : rows_) {
      row.values.resize(width);
      row.low.resize(segments);
      row.high.resize(segments);
    }
    line_.resize(p_width_);
  }

  const Row& row(int index) {
    Row& row = rows_[static_cast<std::size_t>(index) % rows_.size()];
    if (row.index != index) fill(row, index);
    return row;
  }

 private:
  void fill(Row& row, int index);

  std::span<const float> p_;
  std::size_t p_width_;
  const std::vector<Cubic>& columns_;
  Box roi_;
  std::vector<float> line_;
  std::array<Row, 4> rows_;  // by row modulo size: the four rows of a position never share an entry
};

CUTOUT_SIMD void stretch(const float* __restrict line, const Cubic* __restrict columns, int n,
                         float* __restrict out) {
  for (int x = 0; x < n; ++x) {
    const Cubic& c = columns[x];
    out[x] = between(line[c.at[0]], line[c.at[1]], line[c.at[2]], line[c.at[3]], c.weights[0],
                     c.weights[1], c.weights[2], c.weights[3]);
  }
}

CUTOUT_SIMD void snap_line(const float* __restrict from, int n, float* __restrict line) {
  for (int x = 0; x < n; ++x) line[x] = snap(from[x]);
}

/// Minimum and maximum of n values >= 0, which are ordered as their bit patterns.
CUTOUT_SIMD void range_of(const float* values, int n, float* low, float* high) {
  std::int32_t least = INT_MAX;
  std::int32_t most = 0;
  for (int x = 0; x < n; ++x) {
    const auto bits = std::bit_cast<std::int32_t>(values[x]);
    least = bits < least ? bits : least;
    most = bits > most ? bits : most;
  }
  *low = std::bit_cast<float>(least);
  *high = std::bit_cast<float>(most);
}

void RowCache::fill(Row& row, int index) {
  row.index = index;
  snap_line(p_.data() + static_cast<std::size_t>(index) * p_width_, static_cast<int>(p_width_),
            line_.data());
  for (int x = 0; x < roi_.width; x += kSegment) {
    const int n = std::min(kSegment, roi_.width - x);
    const Cubic* columns = columns_.data() + roi_.left + x;
    float* values = row.values.data() + x;
    float& low = row.low[static_cast<std::size_t>(x / kSegment)];
    float& high = row.high[static_cast<std::size_t>(x / kSegment)];
    const int first = columns[0].at[1];
    range_of(line_.data() + first, columns[n - 1].at[2] + 1 - first, &low, &high);
    if (low == high) {
      std::fill_n(values, n, low);
    } else {
      stretch(line_.data(), columns, n, values);
    }
  }
}

CUTOUT_SIMD void vertical(const float* __restrict a, const float* __restrict b,
                          const float* __restrict c, const float* __restrict d,
                          const float* weights, int n, std::uint32_t* __restrict matte) {
  const float wa = weights[0];
  const float wb = weights[1];
  const float wc = weights[2];
  const float wd = weights[3];
  for (int x = 0; x < n; ++x) {
    const float p = between(a[x], b[x], c[x], d[x], wa, wb, wc, wd);
    matte[x] = static_cast<std::uint32_t>(static_cast<std::int32_t>(p * 255.0F + 0.5F));
  }
}

CUTOUT_SIMD AlphaRun multiply_matte(std::uint32_t* __restrict pixels,
                                    const std::uint32_t* __restrict matte, int n,
                                    std::uint32_t hidden_mask) {
  AlphaRun run;
  for (int x = 0; x < n; ++x) {
    const std::uint32_t alpha = multiply_255(pixels[x] >> 24, matte[x]);
    pixels[x] = with_alpha(pixels[x], alpha, hidden_mask);
    run.any |= alpha;
    run.all &= alpha;
    run.foreground += alpha >> 7;
  }
  return run;
}

}  // namespace

MatteSummary apply_matte(ImageView rgba, std::span<const float> p, int p_width, int p_height,
                         const Box& roi, HiddenColour hidden, ThreadPool& pool) {
  const Box inside = clip(roi, rgba);
  const std::vector<Cubic> rows = cubic_positions(p_height, rgba.height);
  const std::vector<Cubic> columns = cubic_positions(p_width, rgba.width);
  const std::uint32_t hidden_mask = hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU;
  const auto height = static_cast<std::size_t>(rgba.height);
  std::vector<Summary> parts((height + kGrain - 1) / kGrain);

  const auto body = [&](std::size_t begin, std::size_t end) {
    RowCache cache(p, p_width, columns, inside);
    Summary summary;
    std::array<std::uint32_t, kSegment> matte;
    std::array<std::uint32_t, kSegment> pixels;
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      std::uint8_t* line = rgba.row(y);
      if (y < inside.top || y >= inside.top + inside.height || inside.width == 0) {
        clear_alpha(line, rgba.width, hidden);
        summary.opaque = false;
        continue;
      }
      const int behind = inside.left + inside.width;
      if (inside.width < rgba.width) {
        clear_alpha(line, inside.left, hidden);
        clear_alpha(line + static_cast<std::ptrdiff_t>(behind) * 4, rgba.width - behind, hidden);
        summary.opaque = false;
      }
      const Cubic& position = rows[static_cast<std::size_t>(y)];
      const Row& a = cache.row(position.at[0]);
      const Row& b = cache.row(position.at[1]);
      const Row& c = cache.row(position.at[2]);
      const Row& d = cache.row(position.at[3]);
      for (int x = 0; x < inside.width; x += kSegment) {
        const int n = std::min(kSegment, inside.width - x);
        const auto segment = static_cast<std::size_t>(x / kSegment);
        std::uint8_t* at = line + static_cast<std::ptrdiff_t>(inside.left + x) * 4;
        // The spline is limited to the range of b and c: they decide whether a segment is all 0
        // or 1.
        if (std::max(b.high[segment], c.high[segment]) < kCertainBackground) {
          clear_alpha(at, n, hidden);
          summary.opaque = false;
          continue;
        }
        const std::size_t bytes = static_cast<std::size_t>(n) * 4;
        AlphaRun run = scan_alpha(at, n);
        const bool whole = std::min(b.low[segment], c.low[segment]) > kCertainForeground;
        if (!whole || (run.all != 255 && hidden == HiddenColour::kClear)) {
          vertical(a.values.data() + x, b.values.data() + x, c.values.data() + x,
                   d.values.data() + x, position.weights.data(), n, matte.data());
          std::memcpy(pixels.data(), at, bytes);  // rows may start at any byte
          run = multiply_matte(pixels.data(), matte.data(), n, hidden_mask);
          std::memcpy(at, pixels.data(), bytes);
        }
        summary.add(run, at, inside.left + x, n, y);
      }
    }
    parts[begin / kGrain] = summary;
  };
  pool.parallel_for(height, kGrain, body);

  Summary whole;
  for (const Summary& part : parts) whole.add(part);
  return whole.result();
}

MatteSummary apply_matte_scalar(ImageView rgba, std::span<const float> p, int p_width, int p_height,
                                const Box& roi, HiddenColour hidden) {
  const std::vector<Cubic> rows = cubic_positions(p_height, rgba.height);
  const std::vector<Cubic> columns = cubic_positions(p_width, rgba.width);
  Summary summary;
  for (int y = 0; y < rgba.height; ++y) {
    for (int x = 0; x < rgba.width; ++x) {
      const Cubic& row = rows[static_cast<std::size_t>(y)];
      const Cubic& column = columns[static_cast<std::size_t>(x)];
      std::array<float, 4> lines{};
      for (std::size_t k = 0; k < 4; ++k) {
        const auto sample = [&](std::size_t j) {
          return snap(p[static_cast<std::size_t>(row.at[k]) * static_cast<std::size_t>(p_width) +
                        static_cast<std::size_t>(column.at[j])]);
        };
        lines[k] = between(sample(0), sample(1), sample(2), sample(3), column.weights[0],
                           column.weights[1], column.weights[2], column.weights[3]);
      }
      const float value = between(lines[0], lines[1], lines[2], lines[3], row.weights[0],
                                  row.weights[1], row.weights[2], row.weights[3]);
      const bool inside =
          x >= roi.left && x < roi.left + roi.width && y >= roi.top && y < roi.top + roi.height;
      std::uint8_t* pixel = rgba.row(y) + static_cast<std::ptrdiff_t>(x) * 4;
      const int matte = inside ? static_cast<int>(value * 255.0F + 0.5F) : 0;
      pixel[3] = static_cast<std::uint8_t>((pixel[3] * matte * 2 + 255) / 510);
      if (pixel[3] == 0 && hidden == HiddenColour::kClear) pixel[0] = pixel[1] = pixel[2] = 0;
      const std::uint32_t alpha = pixel[3];
      summary.add({alpha, alpha, alpha >> 7}, pixel, x, 1, y);
    }
  }
  return summary.result();
}

}  // namespace cutout
