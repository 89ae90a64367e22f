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

/// The kSums sums of n network pixels, planes `stride` apart.
CUTOUT_SIMD void weigh_row(const float* __restrict red, const float* __restrict green,
                           const float* __restrict blue, const float* __restrict alpha,
                           const float* scale, const float* offset, float unknown, int n,
                           int stride, float* __restrict out) {
  const float over = 1.0F / (1.0F - unknown);
#pragma GCC ivdep  // planes lie apart
  for (int i = 0; i < n; ++i) {
    const float r = red[i] * scale[0] + offset[0];
    const float g = green[i] * scale[1] + offset[1];
    const float b = blue[i] * scale[2] + offset[2];
    const float fore = layer_weight(alpha[i], unknown, over);
    const float back = layer_weight(1.0F - alpha[i], unknown, over);
    const float square = squared_length(r, g, b);
    out[i] = r * fore;
    out[stride + i] = g * fore;
    out[2 * stride + i] = b * fore;
    out[3 * stride + i] = square * fore;
    out[4 * stride + i] = fore;
    out[5 * stride + i] = r * back;
    out[6 * stride + i] = g * back;
    out[7 * stride + i] = b * back;
    out[8 * stride + i] = square * back;
    out[9 * stride + i] = back;
  }
}

/// kSums planes of one row.
struct Planes {
  const float* first;
  std::ptrdiff_t stride;  // from one plane to the next
};

/// Sums `n` columns of two rows of a finer level into (n + 1) / 2 columns of row y of `level`, from
/// column x on. A column that does not exist counts as 0.
void pull(const Planes& upper, const Planes& lower, int n, int x, int y, Level& level) {
  for (int k = 0; k < kSums; ++k) {
    const float* a = upper.first + k * upper.stride;
    const float* b = lower.first + k * lower.stride;
    float* out = level.row(k, y) + x;
    pull_row(a, b, n / 2, out);
    if (n % 2 != 0) out[n / 2] = (a[n - 1] + 0.0F) + (b[n - 1] + 0.0F);
  }
  for (int k = 0; k < kSums; k += kLayerSums) {
    limit_row(level.row(k, y) + x, level.row(k + 1, y) + x, level.row(k + 2, y) + x,
              level.row(k + kSquaredLength, y) + x, level.row(k + kWeight, y) + x, (n + 1) / 2);
  }
}

/// The first level above the guide; the guide's own sums are not stored.
Level first_level(const Guide& guide, const float* alpha, float unknown, ThreadPool& pool) {
  constexpr int kPiece = 128;  // columns whose sums stay in the first-level cache
  Level level((guide.width + 1) / 2, (guide.height + 1) / 2);
  pool.parallel_for(
      static_cast<std::size_t>(level.height), kRowGrain, [&](std::size_t begin, std::size_t end) {
        std::array<std::array<float, kSums * kPiece>, 2> rows{};
        for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
          if (2 * y + 1 == guide.height) rows[1].fill(0.0F);
          for (int x = 0; x < guide.width; x += kPiece) {
            const int n = std::min(kPiece, guide.width - x);
            for (int k = 0; k < std::min(2, guide.height - 2 * y); ++k) {
              const std::size_t index = guide.at(x, 2 * y + k);
              weigh_row(guide.planes[0] + index, guide.planes[1] + index, guide.planes[2] + index,
                        alpha + index, guide.scale.data(), guide.offset.data(), unknown, n, kPiece,
                        rows[static_cast<std::size_t>(k)].data());
            }
            pull({rows[0].data(), kPiece}, {rows[1].data(), kPiece}, n, x / 2, y, level);
          }
        }
      });
  return level;
}

Level next_level(const Level& fine, ThreadPool& pool) {
  Level level((fine.width + 1) / 2, (fine.height + 1) / 2);
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(fine.width) * fine.height;
  const std::vector<float> nothing(static_cast<std::size_t>(fine.width));
  pool.parallel_for(
      static_cast<std::size_t>(level.height), kRowGrain, [&](std::size_t begin, std::size_t end) {
        for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
          const Planes upper{fine.row(0, 2 * y), stride};
          const bool last = 2 * y + 1 == fine.height;
          const Planes lower =
              last ? Planes{nothing.data(), 0} : Planes{upper.first + fine.width, stride};
          pull(upper, lower, fine.width, 0, y, level);
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
  pool.parallel_for(static_cast<std::size_t>(fine.height), kRowGrain,
                    [&](std::size_t begin, std::size_t end) {
                      Widened widened(coarse, fine.width, 0, fine.width);
                      for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
                        const CoarseTaps v = coarse_taps(y, coarse.height);
                        for (int c = 0; c < Widened::kMeans; ++c) {
                          const int plane = plane_of(c);
                          push_row(widened.row(c, v.near), widened.row(c, v.far),
                                   fine.row(weight_of(plane), y), fine.width, fine.row(plane, y));
                        }
                      }
                    });
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

namespace {

/// Pull phase of the scalar version: a level from the next finer one, whose sums `fine` returns.
template <typename Fine>
Level pull_scalar(int width, int height, const Fine& fine) {
  Level level((width + 1) / 2, (height + 1) / 2);
  for (int y = 0; y < level.height; ++y) {
    for (int x = 0; x < level.width; ++x) {
      const auto sum = [&](int k) {
        const auto value = [&](int i, int j) {
          return 2 * x + i < width && 2 * y + j < height ? fine(k, 2 * x + i, 2 * y + j) : 0.0F;
        };
        return (value(0, 0) + value(1, 0)) + (value(0, 1) + value(1, 1));
      };
      for (int layer = 0; layer < kSums; layer += kLayerSums) {
        const float weight = sum(layer + kWeight);
        for (int k = layer; k < layer + kLayerSums; ++k) {
          level.row(k, y)[x] = sum(k) * limit_weight(weight);
        }
      }
    }
  }
  return level;
}

}  // namespace

Level spread_colours_scalar(const Guide& guide, const float* alpha, float unknown) {
  const float over = 1.0F / (1.0F - unknown);
  const auto weight = [&](int layer, std::size_t index) {
    return layer_weight(layer == 0 ? alpha[index] : 1.0F - alpha[index], unknown, over);
  };
  std::vector<Level> levels;
  levels.push_back(pull_scalar(guide.width, guide.height, [&](int k, int x, int y) {
    const std::size_t index = guide.at(x, y);
    const auto colour = [&](std::size_t c) { return guide.colour(c, index); };
    const float w = weight(k / kLayerSums, index);
    const int sum = k % kLayerSums;
    if (sum == kWeight) return w;
    if (sum == kSquaredLength) return squared_length(colour(0), colour(1), colour(2)) * w;
    return colour(static_cast<std::size_t>(sum)) * w;
  }));
  while (levels.back().width > 1 || levels.back().height > 1) {
    const Level& fine = levels.back();
    levels.push_back(pull_scalar(fine.width, fine.height,
                                 [&](int k, int x, int y) { return fine.row(k, y)[x]; }));
  }
  finish_coarsest(levels.back());
  for (std::size_t l = levels.size() - 1; l > 0; --l) {
    Level& fine = levels[l - 1];
    for (int k = 0; k < kSums; ++k) {
      if (k == weight_of(k)) continue;
      for (int y = 0; y < fine.height; ++y) {
        for (int x = 0; x < fine.width; ++x) {
          const float rest = 1.0F - fine.row(weight_of(k), y)[x];
          fine.row(k, y)[x] += rest * from_coarse(levels[l], k, x, y);
        }
      }
    }
  }
  return std::move(levels.front());
}

}  // namespace cutout
