#include "matte/colour.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr int kSteps = 8;
constexpr float kSmooth = 1e-5F;       // pull of a neighbour where alpha is even (Germer: 1e-5)
constexpr std::size_t kRowGrain = 16;  // rows of a level

/// Premultiplied colour sums and weight of both layers: F r, g, b, w, then B r, g, b, w.
constexpr int kSums = 8;

/// One level of the pyramid: `values` of kSums planes on the way down (in size), of which the
/// weights' planes stay and the colours' become the layers' colours on the way up.
struct Level {
  int width = 0;
  int height = 0;
  std::vector<float> values;

  Level(int w, int h) : width(w), height(h) {
    values.resize(kSums * static_cast<std::size_t>(w) * static_cast<std::size_t>(h));
  }
  float* row(int plane, int y) {
    return values.data() + (static_cast<std::ptrdiff_t>(plane) * height + y) * width;
  }
  [[nodiscard]] const float* row(int plane, int y) const {
    return values.data() + (static_cast<std::ptrdiff_t>(plane) * height + y) * width;
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

/// Rows 2y and 2y + 1 of a finer level, each kSums planes of `stride`, into row y of `level`. A
/// row or column that does not exist counts as nothing.
void pull(const float* upper, const float* lower, int stride, int y, Level& level) {
  for (int k = 0; k < kSums; ++k) {
    pull_row(upper + static_cast<std::ptrdiff_t>(k) * stride,
             lower + static_cast<std::ptrdiff_t>(k) * stride, level.width, level.row(k, y));
  }
  for (int k = 0; k < kSums; k += 4) {
    limit_row(level.row(k, y), level.row(k + 1, y), level.row(k + 2, y), level.row(k + 3, y),
              level.width);
  }
}

/// The level above the guide itself, which is never written down.
Level first_level(const Guide& guide, const float* alpha, ThreadPool& pool) {
  Level level((guide.width + 1) / 2, (guide.height + 1) / 2);
  pool.parallel_for(
      static_cast<std::size_t>(level.height), kRowGrain, [&](std::size_t begin, std::size_t end) {
        const int stride = level.width * 2;
        const std::size_t size = static_cast<std::size_t>(kSums) * static_cast<std::size_t>(stride);
        std::vector<float> rows(2 * size);
        for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
          for (int k = 0; k < 2; ++k) {
            float* row = rows.data() + (k == 0 ? 0 : size);
            if (2 * y + k >= guide.height) {
              std::fill_n(row, size, 0.0F);
              continue;
            }
            const std::size_t cell = guide.at(0, 2 * y + k);
            weigh_row(guide.planes[0] + cell, guide.planes[1] + cell, guide.planes[2] + cell,
                      alpha + cell, guide.scale.data(), guide.offset.data(), guide.width, stride,
                      row);
          }
          pull(rows.data(), rows.data() + size, stride, y, level);
        }
      });
  return level;
}

Level next_level(const Level& fine, ThreadPool& pool) {
  Level level((fine.width + 1) / 2, (fine.height + 1) / 2);
  pool.parallel_for(
      static_cast<std::size_t>(level.height), kRowGrain, [&](std::size_t begin, std::size_t end) {
        const int stride = level.width * 2;
        const std::size_t size = static_cast<std::size_t>(kSums) * static_cast<std::size_t>(stride);
        std::vector<float> rows(2 * size);
        for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
          for (int k = 0; k < 2; ++k) {
            for (int plane = 0; plane < kSums; ++plane) {
              float* row =
                  rows.data() + (k == 0 ? 0 : size) + static_cast<std::ptrdiff_t>(plane) * stride;
              if (2 * y + k < fine.height) {
                std::memcpy(row, fine.row(plane, 2 * y + k),
                            static_cast<std::size_t>(fine.width) * sizeof(float));
              } else {
                std::fill_n(row, fine.width, 0.0F);
              }
            }
          }
          pull(rows.data(), rows.data() + size, stride, y, level);
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

inline float between_cells(float near, float far) { return 0.75F * near + 0.25F * far; }

/// Colour `plane` of a finer cell (x, y) as the coarser level has it.
inline float from_coarse(const Level& coarse, int plane, int x, int y) {
  const Half h = half_of(x, coarse.width);
  const Half v = half_of(y, coarse.height);
  const float* near = coarse.row(plane, v.near);
  const float* far = coarse.row(plane, v.far);
  return between_cells(between_cells(near[h.near], near[h.far]),
                       between_cells(far[h.near], far[h.far]));
}

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

void push(const Level& coarse, Level& fine, ThreadPool& pool) {
  pool.parallel_for(static_cast<std::size_t>(fine.height), kRowGrain,
                    [&](std::size_t begin, std::size_t end) {
                      for (auto y = static_cast<int>(begin); y < static_cast<int>(end); ++y) {
                        for (int c = 0; c < kSums; ++c) {
                          if (c % 4 == 3) continue;
                          const float* weight = fine.row(c / 4 * 4 + 3, y);
                          float* row = fine.row(c, y);
                          for (int x = 0; x < fine.width; ++x) {
                            row[x] += (1.0F - weight[x]) * from_coarse(coarse, c, x, y);
                          }
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
constexpr int kPatch = kSide * kSide;

/// A tile and what its result depends on: colour, alpha, then F and B twice, planes of kPatch.
struct Patches {
  float colour[3][kPatch];
  float alpha[kPatch];
  float layers[2][6][kPatch];  // before and after a step: F r, g, b, B r, g, b
};

CUTOUT_SIMD void jacobi(const float* __restrict colour, const float* __restrict alpha,
                        const float* __restrict from, int inset, float* __restrict to) {
  for (int j = inset; j < kSide - inset; ++j) {
    for (int i = inset; i < kSide - inset; ++i) {
      const int at = j * kSide + i;
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
inline float first_guess(float colour, float weight, float coarse) {
  return colour * weight + (1.0F - weight) * coarse;
}

void solve_tile(const Guide& guide, const float* alpha, const Level& coarse, const Tile& tile,
                Patches& at, CellColours& out) {
  for (int j = 0; j < kSide; ++j) {
    const int y = std::clamp(tile.top - kSteps - 1 + j, 0, guide.height - 1);
    for (int i = 0; i < kSide; ++i) {
      const int x = std::clamp(tile.left - kSteps - 1 + i, 0, guide.width - 1);
      const std::size_t cell = guide.at(x, y);
      const int k = j * kSide + i;
      const float a = alpha[cell];
      at.alpha[k] = a;
      const float fore = power8(a);
      const float back = power8(1.0F - a);
      for (int c = 0; c < 3; ++c) {
        const float colour = guide.colour(static_cast<std::size_t>(c), cell);
        at.colour[c][k] = colour;
        at.layers[0][c][k] = first_guess(colour, fore, from_coarse(coarse, c, x, y));
        at.layers[0][c + 3][k] = first_guess(colour, back, from_coarse(coarse, c + 4, x, y));
      }
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
  pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
    const auto patches = std::make_unique_for_overwrite<Patches>();
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
