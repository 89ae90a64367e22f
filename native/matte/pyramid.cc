#include "matte/pyramid.h"

#include <cstddef>
#include <utility>

namespace cutout {

namespace {

constexpr std::size_t kRowGrain = 16;  // rows of a level

CUTOUT_SIMD void pull_row(const float* __restrict a, const float* __restrict b, int n,
                          float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = (a[2 * i] + a[2 * i + 1]) + (b[2 * i] + b[2 * i + 1]);
}

/// Limits the weights of n pixels to 1 and their sums with them.
CUTOUT_SIMD void limit_row(float* __restrict r, float* __restrict g, float* __restrict b,
                           float* __restrict square, float* __restrict w, int n) {
  for (int i = 0; i < n; ++i) {
    const float by = limit_weight(w[i]);
    r[i] *= by;
    g[i] *= by;
    b[i] *= by;
    square[i] *= by;
    w[i] *= by;
  }
}

enum Layer { kFore, kBack };

/// The plane of the first sum of a layer.
constexpr int first_of(Layer layer) { return static_cast<int>(layer) * kLayerSums; }

/// The weights of n network pixels in the sums of a layer; whether any is not 0.
CUTOUT_SIMD bool weights_row(const float* __restrict alpha, Layer layer, float unknown, int n,
                             float* __restrict weights) {
  const float over = 1.0F / (1.0F - unknown);
  int any = 0;
  for (int i = 0; i < n; ++i) {
    weights[i] = layer_weight(layer == kFore ? alpha[i] : 1.0F - alpha[i], unknown, over);
    any |= static_cast<int>(weights[i] != 0.0F);
  }
  return any != 0;
}

/// The weighted colours of n network pixels and their squared lengths, planes `stride` apart. The
/// plane of their weights follows.
CUTOUT_SIMD void weigh_row(const float* __restrict red, const float* __restrict green,
                           const float* __restrict blue, const float* scale, const float* offset,
                           int n, int stride, float* __restrict out) {
  const float* weights = out + kWeight * stride;
#pragma GCC ivdep  // planes lie apart
  for (int i = 0; i < n; ++i) {
    const float r = red[i] * scale[0] + offset[0];
    const float g = green[i] * scale[1] + offset[1];
    const float b = blue[i] * scale[2] + offset[2];
    const float weight = weights[i];
    out[i] = r * weight;
    out[stride + i] = g * weight;
    out[2 * stride + i] = b * weight;
    out[kSquaredLength * stride + i] = squared_length(r, g, b) * weight;
  }
}

/// Planes of the sums of a layer in one row.
struct Planes {
  const float* first;
  std::ptrdiff_t stride;  // from one plane to the next
};

/// Sums `n` columns of a layer in two rows of a finer level into (n + 1) / 2 columns of row y of
/// `level`, from column x on. A column that does not exist counts as 0.
void pull(const Planes& upper, const Planes& lower, Layer layer, int n, int x, int y,
          Level& level) {
  const int first = first_of(layer);
  const auto row = [&](int k) { return level.row(first + k, y) + x; };
  for (int k = 0; k < kLayerSums; ++k) {
    const float* a = upper.first + k * upper.stride;
    const float* b = lower.first + k * lower.stride;
    float* out = row(k);
    pull_row(a, b, n / 2, out);
    if (n % 2 != 0) out[n / 2] = (a[n - 1] + 0.0F) + (b[n - 1] + 0.0F);
  }
  limit_row(row(0), row(1), row(2), row(kSquaredLength), row(kWeight), (n + 1) / 2);
}

/// The first level above the guide; the guide's own sums are not stored.
Level first_level(const Guide& guide, const float* alpha, float unknown, ThreadPool& pool) {
  constexpr int kPiece = 128;  // columns whose sums stay in the first-level cache
  Level level((guide.width + 1) / 2, (guide.height + 1) / 2);
  const auto body = [&](std::size_t begin, std::size_t end) {
    std::array<std::array<float, kLayerSums * kPiece>, 2> rows{};
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      const auto there = static_cast<std::size_t>(std::min(2, guide.height - 2 * y));
      if (there == 1) rows[1].fill(0.0F);
      for (int x = 0; x < guide.width; x += kPiece) {
        const int n = std::min(kPiece, guide.width - x);
        const std::size_t index = guide.at(x, 2 * y);
        const auto below = [&](std::size_t k) {
          return index + k * static_cast<std::size_t>(guide.width);
        };
        for (const Layer layer : {kFore, kBack}) {
          bool any = false;
          for (std::size_t k = 0; k < there; ++k) {
            any |=
                weights_row(alpha + below(k), layer, unknown, n, rows[k].data() + kWeight * kPiece);
          }
          if (!any) {  // most of an image is sure to be in the other layer
            for (int k = first_of(layer); k < first_of(layer) + kLayerSums; ++k) {
              std::fill_n(level.row(k, y) + x / 2, (n + 1) / 2, 0.0F);
            }
            continue;
          }
          for (std::size_t k = 0; k < there; ++k) {
            const std::size_t at = below(k);
            weigh_row(guide.planes[0] + at, guide.planes[1] + at, guide.planes[2] + at,
                      guide.scale.data(), guide.offset.data(), n, kPiece, rows[k].data());
          }
          pull({rows[0].data(), kPiece}, {rows[1].data(), kPiece}, layer, n, x / 2, y, level);
        }
      }
    }
  };
  pool.parallel_for(static_cast<std::size_t>(level.height), kRowGrain, body);
  return level;
}

Level next_level(const Level& fine, ThreadPool& pool) {
  Level level((fine.width + 1) / 2, (fine.height + 1) / 2);
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(fine.width) * fine.height;
  const std::vector<float> nothing(static_cast<std::size_t>(fine.width));
  pool.for_each(static_cast<std::size_t>(level.height), kRowGrain, [&](std::size_t row) {
    const auto y = static_cast<int>(row);
    for (const Layer layer : {kFore, kBack}) {
      const Planes upper{fine.row(first_of(layer), 2 * y), stride};
      const Planes lower = 2 * y + 1 == fine.height ? Planes{nothing.data(), 0}
                                                    : Planes{upper.first + fine.width, stride};
      pull(upper, lower, layer, fine.width, 0, y, level);
    }
  });
  return level;
}

/// Coarse pixels 0 .. n - 1 interpolated to twice their number; reads neighbours -1 and n too.
CUTOUT_SIMD void widen(const float* __restrict coarse, int n, float* __restrict fine) {
  for (int i = 0; i < n; ++i) {
    fine[2 * i] = interpolate(coarse[i], coarse[i - 1]);
    fine[2 * i + 1] = interpolate(coarse[i], coarse[i + 1]);
  }
}

}  // namespace

void Widened::fill(Row& row, int y) {
  row.index = y;
  for (int c = 0; c < kMeans; ++c) {
    float* out = row.values.data() + c * stride_;
    copy_padded(coarse_.row(plane_of(c), y), coarse_.width, first_ - 1, count_ + 2, border_.data());
    widen(border_.data() + 1, count_, out);
    // Columns right of the finer level repeat its last one, which interpolation between repeated
    // coarse pixels gives only where the last column is the second of its coarse pixel.
    const int last = fine_width_ - 1 - 2 * first_;
    for (int i = last + 1; i < stride_; ++i) out[i] = out[last];
  }
}

namespace {

/// Sums -> colours on the coarsest level.
void finish_coarsest(Level& level) {
  for (int y = 0; y < level.height; ++y) {
    for (int k = 0; k < kSums; k += kLayerSums) {
      const float* weight = level.row(k + kWeight, y);
      for (int c = k; c < k + kWeight; ++c) {
        float* row = level.row(c, y);
        for (int x = 0; x < level.width; ++x) row[x] /= std::max(weight[x], 1e-9F);
      }
    }
  }
}

CUTOUT_SIMD void push_row(const float* __restrict near, const float* __restrict far,
                          const float* __restrict weight, int n, float* __restrict row) {
  for (int i = 0; i < n; ++i) row[i] += (1.0F - weight[i]) * interpolate(near[i], far[i]);
}

void push(const Level& coarse, Level& fine, ThreadPool& pool) {
  const auto body = [&](std::size_t begin, std::size_t end) {
    Widened widened(coarse, fine.width, 0, fine.width);
    for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
      const CoarseTaps v = coarse_taps(y, coarse.height);
      for (int c = 0; c < Widened::kMeans; ++c) {
        const int plane = plane_of(c);
        push_row(widened.row(c, v.near), widened.row(c, v.far), fine.row(weight_of(plane), y),
                 fine.width, fine.row(plane, y));
      }
    }
  };
  pool.parallel_for(static_cast<std::size_t>(fine.height), kRowGrain, body);
}

}  // namespace

Level spread_colours(const Guide& guide, const float* alpha, float unknown, ThreadPool& pool) {
  std::vector<Level> levels;
  levels.push_back(first_level(guide, alpha, unknown, pool));
  while (levels.back().width > 1 || levels.back().height > 1) {
    levels.push_back(next_level(levels.back(), pool));
  }
  finish_coarsest(levels.back());
  while (levels.size() > 1) {
    push(levels.back(), levels[levels.size() - 2], pool);
    levels.pop_back();
  }
  return std::move(levels.front());
}

}  // namespace cutout
