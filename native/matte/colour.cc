#include "matte/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr int kSteps = 8;
constexpr float kSmooth = 1e-5F;       // pull of a neighbour where alpha is even (Germer: 1e-5)
constexpr std::size_t kRowGrain = 16;  // rows of a level
constexpr std::size_t kTileGrain = 4;

/// Premultiplied colour sums and weight of both layers: F r, g, b, w, then B r, g, b, w.
constexpr int kSums = 8;

/// One level of the pyramid: kSums planes on the way down, of which the weights' planes stay and
/// the colours' become the layers' colours on the way up.
struct Level {
  int width = 0;
  int height = 0;
  std::unique_ptr<float[]> values;

  Level(int w, int h) : width(w), height(h) {
    values = std::make_unique_for_overwrite<float[]>(kSums * static_cast<std::size_t>(w) *
                                                     static_cast<std::size_t>(h));
  }
  [[nodiscard]] float* row(int plane, int y) const {
    return values.get() + (static_cast<std::ptrdiff_t>(plane) * height + y) * width;
  }
};

CUTOUT_INLINE float power8(float v) {
  const float v2 = v * v;
  const float v4 = v2 * v2;
  return v4 * v4;
}

/// What brings four cells' sums to a weight of at most 1.
inline float limit_weight(float weight) { return weight > 1.0F ? 1.0F / weight : 1.0F; }

CUTOUT_SIMD void pull_row(const float* __restrict a, const float* __restrict b, int n,
                          float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = (a[2 * i] + a[2 * i + 1]) + (b[2 * i] + b[2 * i + 1]);
}

CUTOUT_SIMD void limit_row(float* __restrict r, float* __restrict g, float* __restrict b,
                           float* __restrict w, int n) {
  for (int i = 0; i < n; ++i) {
    const float by = limit_weight(w[i]);
    r[i] *= by;
    g[i] *= by;
    b[i] *= by;
    w[i] *= by;
  }
}

/// The eight numbers of n cells of the guide, planes `stride` apart.
CUTOUT_SIMD void weigh_row(const float* __restrict red, const float* __restrict green,
                           const float* __restrict blue, const float* __restrict alpha,
                           const float* scale, const float* offset, int n, int stride,
                           float* __restrict out) {
#pragma GCC ivdep  // planes lie apart
  for (int i = 0; i < n; ++i) {
    const float r = red[i] * scale[0] + offset[0];
    const float g = green[i] * scale[1] + offset[1];
    const float b = blue[i] * scale[2] + offset[2];
    const float fore = power8(alpha[i]);
    const float back = power8(1.0F - alpha[i]);
    out[i] = r * fore;
    out[stride + i] = g * fore;
    out[2 * stride + i] = b * fore;
    out[3 * stride + i] = fore;
    out[4 * stride + i] = r * back;
    out[5 * stride + i] = g * back;
    out[6 * stride + i] = b * back;
    out[7 * stride + i] = back;
  }
}

/// kSums planes of one row.
struct Planes {
  const float* first;
  std::ptrdiff_t stride;  // from one plane to the next
};

/// `n` cells of two rows of a finer level into (n + 1) / 2 cells from `x` on of row y of `level`. A
/// column that does not exist counts as nothing.
void pull(const Planes& upper, const Planes& lower, int n, int x, int y, Level& level) {
  for (int k = 0; k < kSums; ++k) {
    const float* a = upper.first + k * upper.stride;
    const float* b = lower.first + k * lower.stride;
    float* out = level.row(k, y) + x;
    pull_row(a, b, n / 2, out);
    if (n % 2 != 0) out[n / 2] = (a[n - 1] + 0.0F) + (b[n - 1] + 0.0F);
  }
  for (int k = 0; k < kSums; k += 4) {
    limit_row(level.row(k, y) + x, level.row(k + 1, y) + x, level.row(k + 2, y) + x,
              level.row(k + 3, y) + x, (n + 1) / 2);
  }
}

/// The level above the guide itself, which is never written down.
Level first_level(const Guide& guide, const float* alpha, ThreadPool& pool) {
  constexpr int kPiece = 128;  // cells whose sums stay in the first cache
  Level level((guide.width + 1) / 2, (guide.height + 1) / 2);
  pool.parallel_for(
      static_cast<std::size_t>(level.height), kRowGrain, [&](std::size_t begin, std::size_t end) {
        std::array<std::array<float, kSums * kPiece>, 2> rows{};
        for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
          if (2 * y + 1 == guide.height) rows[1].fill(0.0F);
          for (int x = 0; x < guide.width; x += kPiece) {
            const int n = std::min(kPiece, guide.width - x);
            for (int k = 0; k < std::min(2, guide.height - 2 * y); ++k) {
              const std::size_t cell = guide.at(x, 2 * y + k);
              weigh_row(guide.planes[0] + cell, guide.planes[1] + cell, guide.planes[2] + cell,
                        alpha + cell, guide.scale.data(), guide.offset.data(), n, kPiece,
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

/// Where cell x of a level lies in the next coarser one: the nearer cell and the other.
struct Half {
  int near;
  int far;
};

inline Half half_of(int x, int coarse) {
  const int near = x / 2;
  const int far = std::clamp(x % 2 == 0 ? near - 1 : near + 1, 0, coarse - 1);
  return {near, far};
}

CUTOUT_INLINE float between_cells(float near, float far) { return 0.75F * near + 0.25F * far; }

/// Colour `plane` of a finer cell (x, y) as the coarser level has it.
inline float from_coarse(const Level& coarse, int plane, int x, int y) {
  const Half h = half_of(x, coarse.width);
  const Half v = half_of(y, coarse.height);
  const float* near = coarse.row(plane, v.near);
  const float* far = coarse.row(plane, v.far);
  return between_cells(between_cells(near[h.near], near[h.far]),
                       between_cells(far[h.near], far[h.far]));
}

/// Coarse cells 0 .. n - 1 at twice their number; their neighbours -1 and n are read as well.
CUTOUT_SIMD void widen(const float* __restrict coarse, int n, float* __restrict fine) {
  for (int i = 0; i < n; ++i) {
    fine[2 * i] = between_cells(coarse[i], coarse[i - 1]);
    fine[2 * i + 1] = between_cells(coarse[i], coarse[i + 1]);
  }
}

/// The colours of a coarser level at the width of the next finer one, columns `left` ..
/// `left` + `n` - 1 of it (the border repeated), row by row downwards.
class Widened {
 public:
  static constexpr int kColours = 6;  // F r, g, b, B r, g, b

  Widened(const Level& coarse, int fine_width, int left, int n)
      : coarse_(coarse),
        fine_width_(fine_width),
        left_(left),
        first_(left >= 0 ? left / 2 : (left - 1) / 2),
        cells_((left + n + 1) / 2 - first_ + 1),
        border_(static_cast<std::size_t>(cells_ + 2)),
        stride_(2 * cells_) {
    for (Row& row : rows_) row.values.resize(kColours * static_cast<std::size_t>(stride_));
  }

  /// Colour `c` of row `y` of the coarse level.
  const float* row(int c, int y) {
    Row& row = rows_[static_cast<std::size_t>(y) % rows_.size()];
    if (row.index != y) fill(row, y);
    return row.values.data() + c * stride_ + (left_ - 2 * first_);
  }

 private:
  struct Row {
    int index = -1;
    std::vector<float> values;
  };

  void fill(Row& row, int y) {
    row.index = y;
    for (int c = 0; c < kColours; ++c) {
      float* out = row.values.data() + c * stride_;
      copy_cells(coarse_.row(c < 3 ? c : c + 1, y), coarse_.width, first_ - 1, cells_ + 2,
                 border_.data());
      widen(border_.data() + 1, cells_, out);
      // Left of the picture the repeated coarse cells give its first column's value; right of it
      // they do so only where the last column is the second of its coarse cell.
      const int last = fine_width_ - 1 - 2 * first_;
      for (int i = last + 1; i < stride_; ++i) out[i] = out[last];
    }
  }

  const Level& coarse_;
  int fine_width_;
  int left_;
  int first_;  // coarse cell
  int cells_;  // coarse cells
  std::vector<float> border_;
  int stride_;
  std::array<Row, 2> rows_;  // the two of a finer row are neighbours
};

/// Sums -> colours, from the coarsest level on.
void finish_coarsest(Level& level) {
  for (int y = 0; y < level.height; ++y) {
    for (int k = 0; k < kSums; k += 4) {
      const float* weight = level.row(k + 3, y);
      for (int c = k; c < k + 3; ++c) {
        float* row = level.row(c, y);
        for (int x = 0; x < level.width; ++x) row[x] /= std::max(weight[x], 1e-9F);
      }
    }
  }
}

CUTOUT_SIMD void push_row(const float* __restrict near, const float* __restrict far,
                          const float* __restrict weight, int n, float* __restrict row) {
  for (int i = 0; i < n; ++i) row[i] += (1.0F - weight[i]) * between_cells(near[i], far[i]);
}

void push(const Level& coarse, Level& fine, ThreadPool& pool) {
  pool.parallel_for(static_cast<std::size_t>(fine.height), kRowGrain,
                    [&](std::size_t begin, std::size_t end) {
                      Widened widened(coarse, fine.width, 0, fine.width);
                      for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
                        const Half v = half_of(y, coarse.height);
                        for (int c = 0; c < Widened::kColours; ++c) {
                          const int plane = c < 3 ? c : c + 1;
                          push_row(widened.row(c, v.near), widened.row(c, v.far),
                                   fine.row(plane / 4 * 4 + 3, y), fine.width, fine.row(plane, y));
                        }
                      }
                    });
}

/// What one cell is pulled to by itself and its four neighbours.
struct Pull {
  float a00, a01, a11;  // the symmetric matrix of F and B
  float over;           // 1 / determinant
};

CUTOUT_INLINE float clamp01(float v) { return v < 0.0F ? 0.0F : (v > 1.0F ? 1.0F : v); }

CUTOUT_INLINE float weight_between(float a, float b) {
  const float d = a - b;
  return kSmooth + (d < 0.0F ? -d : d);
}

struct Neighbours {
  float left, right, up, down;
};

CUTOUT_INLINE Pull pull_of(float alpha, const Neighbours& w) {
  const float sum = (w.left + w.right) + (w.up + w.down);
  const float rest = 1.0F - alpha;
  Pull pull{alpha * alpha + sum, alpha * rest, rest * rest + sum, 0.0F};
  pull.over = 1.0F / (pull.a00 * pull.a11 - pull.a01 * pull.a01);
  return pull;
}

CUTOUT_INLINE float pulled(float own, const Neighbours& w, const Neighbours& v) {
  return own + ((w.left * v.left + w.right * v.right) + (w.up * v.up + w.down * v.down));
}

CUTOUT_INLINE float solve_fore(const Pull& m, float b0, float b1) {
  return clamp01(m.over * (m.a11 * b0 - m.a01 * b1));
}

CUTOUT_INLINE float solve_back(const Pull& m, float b0, float b1) {
  return clamp01(m.over * (m.a00 * b1 - m.a01 * b0));
}

constexpr int kSide = kTile + 2 * (kSteps + 1);
constexpr int kSpare = 16;  // cells behind the last that a loop over whole vectors may touch
constexpr int kPatch = kSide * kSide + kSpare;
// Columns without a patch's outermost ones: whole vectors, so that no loop has a rest. What lies
// outside of what a step needs comes to nothing valid.
constexpr int kInner = kSide - 2;
static_assert(kInner % 16 == 0);

/// A tile and what its result depends on: colour, alpha, then F and B twice, planes of kPatch.
struct Patches {
  float colour[3][kPatch] = {};
  float alpha[kPatch] = {};
  float layers[2][6][kPatch] = {};  // before and after a step: F r, g, b, B r, g, b
};

CUTOUT_SIMD void jacobi(const float* __restrict colour, const float* __restrict alpha,
                        const float* __restrict from, int inset, float* __restrict to) {
  for (int j = inset; j < kSide - inset; ++j) {
#pragma GCC ivdep  // planes lie apart
    for (int at = j * kSide + 1; at < j * kSide + 1 + kInner; ++at) {
      const float a = alpha[at];
      const Neighbours w{weight_between(a, alpha[at - 1]), weight_between(a, alpha[at + 1]),
                         weight_between(a, alpha[at - kSide]),
                         weight_between(a, alpha[at + kSide])};
      const Pull m = pull_of(a, w);
      for (int c = 0; c < 3; ++c) {
        const float* fore = from + c * kPatch + at;
        const float* back = from + (c + 3) * kPatch + at;
        const float own = colour[c * kPatch + at];
        const float b0 = pulled(a * own, w, {fore[-1], fore[1], fore[-kSide], fore[kSide]});
        const float b1 =
            pulled((1.0F - a) * own, w, {back[-1], back[1], back[-kSide], back[kSide]});
        to[c * kPatch + at] = solve_fore(m, b0, b1);
        to[(c + 3) * kPatch + at] = solve_back(m, b0, b1);
      }
    }
  }
}

/// First guess of a layer's colour at a cell of the guide itself.
CUTOUT_INLINE float first_guess(float colour, float weight, float coarse) {
  return colour * weight + (1.0F - weight) * coarse;
}

CUTOUT_SIMD void scale_row(float* __restrict row, float scale, float offset, int n) {
  for (int i = 0; i < n; ++i) row[i] = row[i] * scale + offset;
}

/// First guesses of both layers in one colour.
CUTOUT_SIMD void guess_row(const float* __restrict alpha, const float* __restrict colour,
                           const float* const* fore_rows, const float* const* back_rows, int n,
                           float* __restrict fore, float* __restrict back) {
  const float* __restrict fore_near = fore_rows[0];
  const float* __restrict fore_far = fore_rows[1];
  const float* __restrict back_near = back_rows[0];
  const float* __restrict back_far = back_rows[1];
  for (int i = 0; i < n; ++i) {
    fore[i] = first_guess(colour[i], power8(alpha[i]), between_cells(fore_near[i], fore_far[i]));
    back[i] =
        first_guess(colour[i], power8(1.0F - alpha[i]), between_cells(back_near[i], back_far[i]));
  }
}

void solve_tile(const Guide& guide, const float* alpha, const Level& coarse, const Tile& tile,
                Patches& at, CellColours& out) {
  const int left = tile.left - kSteps - 1;
  Widened widened(coarse, guide.width, left, kSide);
  for (int j = 0; j < kSide; ++j) {
    const int y = std::clamp(tile.top - kSteps - 1 + j, 0, guide.height - 1);
    const Half v = half_of(y, coarse.height);
    const std::size_t row = guide.at(0, y);
    const int k = j * kSide;
    copy_cells(alpha + row, guide.width, left, kSide, at.alpha + k);
    for (int c = 0; c < 3; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      copy_cells(guide.planes[channel] + row, guide.width, left, kSide, at.colour[c] + k);
      scale_row(at.colour[c] + k, guide.scale[channel], guide.offset[channel], kSide);
      const float* fore[2] = {widened.row(c, v.near), widened.row(c, v.far)};
      const float* back[2] = {widened.row(c + 3, v.near), widened.row(c + 3, v.far)};
      guess_row(at.alpha + k, at.colour[c] + k, fore, back, kSide, at.layers[0][c] + k,
                at.layers[0][c + 3] + k);
    }
  }
  for (int step = 0; step < kSteps; ++step) {
    jacobi(at.colour[0], at.alpha, at.layers[step % 2][0], step + 1, at.layers[(step + 1) % 2][0]);
  }
  const auto& result = at.layers[kSteps % 2];
  for (int y = tile.top; y < tile.bottom; ++y) {
    const int k = (y - tile.top + kSteps + 1) * kSide + kSteps + 1;
    const std::size_t bytes = static_cast<std::size_t>(tile.right - tile.left) * sizeof(float);
    for (std::size_t c = 0; c < 3; ++c) {
      std::memcpy(out.fore[c].get() + guide.at(tile.left, y), result[c] + k, bytes);
      std::memcpy(out.back[c].get() + guide.at(tile.left, y), result[c + 3] + k, bytes);
    }
  }
}

CellColours empty_colours(const Guide& guide) {
  CellColours colours;
  for (std::size_t c = 0; c < 3; ++c) {
    colours.fore[c] = std::make_unique_for_overwrite<float[]>(guide.cells());
    colours.back[c] = std::make_unique_for_overwrite<float[]>(guide.cells());
  }
  return colours;
}

/// The level above the guide with finished colours.
Level finished_level(const Guide& guide, const float* alpha, ThreadPool& pool) {
  std::vector<Level> levels;
  levels.push_back(first_level(guide, alpha, pool));
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

}  // namespace

CellColours estimate_colours(const Guide& guide, const float* alpha, const std::vector<Tile>& tiles,
                             ThreadPool& pool) {
  CellColours colours = empty_colours(guide);
  if (tiles.empty()) return colours;
  const Level coarse = finished_level(guide, alpha, pool);
  pool.parallel_for(tiles.size(), kTileGrain, [&](std::size_t begin, std::size_t end) {
    const auto patches = std::make_unique<Patches>();
    for (std::size_t i = begin; i < end; ++i) {
      solve_tile(guide, alpha, coarse, tiles[i], *patches, colours);
    }
  });
  return colours;
}

namespace {

/// The pyramid cell by cell: level l from level l - 1, whose values `fine` gives.
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
      for (int layer = 0; layer < kSums; layer += 4) {
        const float weight = sum(layer + 3);
        for (int k = layer; k < layer + 4; ++k) {
          level.row(k, y)[x] = sum(k) * limit_weight(weight);
        }
      }
    }
  }
  return level;
}

}  // namespace

CellColours estimate_colours_scalar(const Guide& guide, const float* alpha) {
  const auto weight = [&](int layer, std::size_t cell) {
    return power8(layer == 0 ? alpha[cell] : 1.0F - alpha[cell]);
  };
  std::vector<Level> levels;
  levels.push_back(pull_scalar(guide.width, guide.height, [&](int k, int x, int y) {
    const std::size_t cell = guide.at(x, y);
    const float w = weight(k / 4, cell);
    return k % 4 == 3 ? w : guide.colour(static_cast<std::size_t>(k % 4), cell) * w;
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
      if (k % 4 == 3) continue;
      for (int y = 0; y < fine.height; ++y) {
        for (int x = 0; x < fine.width; ++x) {
          const float rest = 1.0F - fine.row(k / 4 * 4 + 3, y)[x];
          fine.row(k, y)[x] += rest * from_coarse(levels[l], k, x, y);
        }
      }
    }
  }

  // The steps on the picture with its border repeated as far as they reach.
  constexpr int kBorder = kSteps + 1;
  const int width = guide.width + 2 * kBorder;
  const int height = guide.height + 2 * kBorder;
  const auto cell_of = [&](int x, int y) {
    return guide.at(std::clamp(x - kBorder, 0, guide.width - 1),
                    std::clamp(y - kBorder, 0, guide.height - 1));
  };
  const auto index = [&](int x, int y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  };
  std::array<std::vector<float>, 6> now;
  for (int k = 0; k < 6; ++k) {
    auto& plane = now[static_cast<std::size_t>(k)];
    plane.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const std::size_t cell = cell_of(x, y);
        plane[index(x, y)] = first_guess(
            guide.colour(static_cast<std::size_t>(k % 3), cell), weight(k / 3, cell),
            from_coarse(levels[0], k < 3 ? k : k + 1, std::clamp(x - kBorder, 0, guide.width - 1),
                        std::clamp(y - kBorder, 0, guide.height - 1)));
      }
    }
  }
  for (int step = 0; step < kSteps; ++step) {
    const std::array<std::vector<float>, 6> before = now;
    for (int y = step + 1; y < height - step - 1; ++y) {
      for (int x = step + 1; x < width - step - 1; ++x) {
        const float a = alpha[cell_of(x, y)];
        const Neighbours w{weight_between(a, alpha[cell_of(x - 1, y)]),
                           weight_between(a, alpha[cell_of(x + 1, y)]),
                           weight_between(a, alpha[cell_of(x, y - 1)]),
                           weight_between(a, alpha[cell_of(x, y + 1)])};
        const Pull m = pull_of(a, w);
        for (std::size_t c = 0; c < 3; ++c) {
          const auto around = [&](const std::vector<float>& plane) {
            return Neighbours{plane[index(x - 1, y)], plane[index(x + 1, y)],
                              plane[index(x, y - 1)], plane[index(x, y + 1)]};
          };
          const float own = guide.colour(c, cell_of(x, y));
          const float b0 = pulled(a * own, w, around(before[c]));
          const float b1 = pulled((1.0F - a) * own, w, around(before[c + 3]));
          now[c][index(x, y)] = solve_fore(m, b0, b1);
          now[c + 3][index(x, y)] = solve_back(m, b0, b1);
        }
      }
    }
  }
  CellColours colours = empty_colours(guide);
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        colours.fore[c][guide.at(x, y)] = now[c][index(x + kBorder, y + kBorder)];
        colours.back[c][guide.at(x, y)] = now[c + 3][index(x + kBorder, y + kBorder)];
      }
    }
  }
  return colours;
}

}  // namespace cutout
