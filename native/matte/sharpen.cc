#include "matte/sharpen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/simd.h"
#include "matte/blur.h"
#include "matte/local_model.h"
#include "matte/tiles.h"
#include "matte/upsample.h"

namespace cutout {

namespace {

constexpr int kRounds = 3;
constexpr int kBlurRadius = 4;
constexpr int kErrorRadius = 2;
// How heavily the model's error counts beside the network's; more where the answer had to be
// corrected: that is no blurred truth.
constexpr float kModelError = 0.15F;
constexpr float kModelErrorCorrected = 0.3F;
// Blurring once more changes the answer by this much (a mean square of alpha) before it is taken
// for anything but soft in truth: rounding to 8 bit, noise and wide gentle slopes stay below.
constexpr float kSoft = 2e-4F;
// Of what blurring changes, blurring again changes a share: less than 0.08 where an edge is twice
// as wide as the network blurs, 0.18 at a step, 0.3 to 0.9 among strands.
constexpr float kWide = 0.08F;
constexpr float kFine = 0.16F;
// What such an answer's softness tells of the truth's: nothing; far above both.
constexpr float kUntold = 1e3F;
constexpr float kRounding = 2e-5F;  // of an answer in 8 bits, and some: such changes tell nothing
// A model's error beyond this, in network errors, is held against it: at an edge, and at strands,
// which no answer tells exactly, times the square of the share above.
constexpr float kFit = 0.8F;
constexpr float kStrands = 12.0F;
// Of what is lacking this share is not added back where an edge is wide: it would be as sharp as
// only the most blurring networks make it.
constexpr float kHeldBack = 0.4F;
// A cell whose neighbourhood stays this near to 0, or to 1, has no edge for the colours to find.
constexpr float kEdge = 0.1F;
// Pictures this many times wider than the answer get back all that the blurred answer lacks.
constexpr float kWhole = 4.0F;
constexpr std::size_t kRowGrain = 32;  // rows of cells
constexpr std::size_t kTileGrain = 16;

/// The share of what the blurred answer lacks that is added back: 0..1.
inline float added_back(const Guide& guide, float enlargement) {
  if (guide.settled != nullptr) return 0.0F;
  const float share = (enlargement - 1.0F) / (kWhole - 1.0F);
  return share > 0.0F ? (share < 1.0F ? share : 1.0F) : 0.0F;
}

using BlurWeights = std::array<float, kBlurRadius + 1>;

BlurWeights blur_weights(float sigma) {
  std::array<double, kBlurRadius + 1> exact{};
  double sum = 0;
  for (int i = 0; i <= kBlurRadius; ++i) {
    const auto at = static_cast<std::size_t>(i);
    exact[at] = std::exp(-0.5 * i * i / (static_cast<double>(sigma) * static_cast<double>(sigma)));
    sum += (i == 0 ? 1 : 2) * exact[at];
  }
  BlurWeights weights{};
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(exact[i] / sum);
  return weights;
}

/// The one order in which every version adds the nine taps.
CUTOUT_INLINE float blur9(const float* at, std::ptrdiff_t step, const float* w) {
  return ((w[0] * at[0] + w[1] * (at[-step] + at[step])) + w[2] * (at[-2 * step] + at[2 * step])) +
         (w[3] * (at[-3 * step] + at[3 * step]) + w[4] * (at[-4 * step] + at[4 * step]));
}

inline float sum5(const float* at, std::ptrdiff_t step) {
  return (at[0] + (at[-step] + at[step])) + (at[-2 * step] + at[2 * step]);
}

/// How far an answer is as fine as its network can draw: 0..1.
CUTOUT_INLINE float fine_of(float again) { return clamp01((again - kWide) / (kFine - kWide)); }

inline float model_error(const Guide& guide) {
  return guide.settled != nullptr ? kModelErrorCorrected : kModelError;
}

/// The share of what blurring changes that blurring again changes.
CUTOUT_INLINE float share_of(float network, float again, bool corrected) {
  const float share = again / (network + kRounding);
  return corrected ? kUntold : share;
}

/// `weight`: model_error.
CUTOUT_INLINE float trust_of(float network, float again, float model, float weight) {
  const float strands = kStrands * again * again;
  const float most = (strands > kFit ? strands : kFit) * network;
  const float fit = model > most ? most / model : 1.0F;
  return fine_of(again) * fit * network * network /
         (network * (network + weight * model) + kSoft * kSoft);
}

/// The share of what is lacking that a cell gets back, of that of the whole picture.
CUTOUT_INLINE float lacking(float again, float back) {
  return back * (1.0F - kHeldBack * (1.0F - fine_of(again)));
}

/// How much of an edge there is between the least and the greatest alpha of a neighbourhood: 0..1.
CUTOUT_INLINE float edge_between(float least, float most) {
  const float background = most / kEdge;
  const float foreground = (1.0F - least) / kEdge;
  return (background < 1.0F ? background : 1.0F) * (foreground < 1.0F ? foreground : 1.0F);
}

/// The same among a cell and its eight neighbours.
inline float edge_at(const float* alpha, int width, int height, int x, int y) {
  float least = 1.0F;
  float most = 0.0F;
  for (int j = std::max(y - 1, 0); j <= std::min(y + 1, height - 1); ++j) {
    for (int i = std::max(x - 1, 0); i <= std::min(x + 1, width - 1); ++i) {
      const float value = alpha[static_cast<std::size_t>(j) * static_cast<std::size_t>(width) +
                                static_cast<std::size_t>(i)];
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  return edge_between(least, most);
}

/// Trust of n cells, of whose 3 x 3 neighbourhoods `alpha` has three rows from the column before.
CUTOUT_SIMD void doubt_row(const float* __restrict above, const float* __restrict here,
                           const float* __restrict below, const std::uint8_t* __restrict unsure,
                           int n, float* __restrict trust) {
  for (int i = 0; i < n; ++i) {
    float least = 1.0F;
    float most = 0.0F;
    for (int k = i; k < i + 3; ++k) {
      for (const float value : {above[k], here[k], below[k]}) {
        least = value < least ? value : least;
        most = value > most ? value : most;
      }
    }
    const float doubted = trust[i] * edge_between(least, most);
    trust[i] = unsure[i] != 0 ? doubted : trust[i];
  }
}

/// Unsure cells go back to the answer as far as it is settled.
CUTOUT_SIMD void return_row(const float* __restrict settled, const float* __restrict p,
                            const std::uint8_t* __restrict unsure, int n, float* __restrict alpha) {
  for (int i = 0; i < n; ++i) {
    const float value = alpha[i] + settled[i] * (p[i] - alpha[i]);
    alpha[i] = unsure[i] != 0 ? value : alpha[i];
  }
}

/// Takes trust away from the unsure cells of a tile that have no edge beside them.
void doubt_tile(const Guide& grid, const Tile& tile, SharpMatte& matte) {
  std::array<std::array<float, kTile + 2>, 3> rows{};  // by row modulo 3
  const int n = tile.right - tile.left;
  const auto load = [&](int y) -> const float* {
    float* row = rows[static_cast<std::size_t>(y + 3) % 3].data();
    const int inside = std::clamp(y, 0, grid.height - 1);
    copy_cells(matte.alpha.get() + grid.at(0, inside), grid.width, tile.left - 1, n + 2, row);
    return row;
  };
  const float* above = load(tile.top - 1);
  const float* here = load(tile.top);
  for (int y = tile.top; y < tile.bottom; ++y) {
    const float* below = load(y + 1);
    const std::size_t cell = grid.at(tile.left, y);
    doubt_row(above, here, below, matte.unsure.get() + cell, n, matte.trust.get() + cell);
    above = here;
    here = below;
  }
}

/// 1 unless the cell and its eight neighbours are all surely background or all surely foreground.
inline bool is_unsure(std::span<const float> p, int width, int height, int x, int y) {
  bool background = true;
  bool foreground = true;
  for (int j = std::max(y - 1, 0); j <= std::min(y + 1, height - 1); ++j) {
    for (int i = std::max(x - 1, 0); i <= std::min(x + 1, width - 1); ++i) {
      const float value = snap(p[static_cast<std::size_t>(j) * static_cast<std::size_t>(width) +
                                 static_cast<std::size_t>(i)]);
      background = background && value == 0.0F;
      foreground = foreground && value == 1.0F;
    }
  }
  return !background && !foreground;
}

/// Least and greatest of three rows' snapped values.
CUTOUT_SIMD void range_across(const float* __restrict a, const float* __restrict b,
                              const float* __restrict c, int n, float* __restrict low,
                              float* __restrict high) {
  for (int i = 0; i < n; ++i) {
    const float u = snap(a[i]);
    const float v = snap(b[i]);
    const float w = snap(c[i]);
    const float least = u < v ? u : v;
    const float most = u < v ? v : u;
    low[i] = least < w ? least : w;
    high[i] = most < w ? w : most;
  }
}

/// `low` and `high` have one more value on either side.
CUTOUT_SIMD void begin_cells(const float* __restrict p, const float* __restrict low,
                             const float* __restrict high, int n, std::uint8_t* __restrict unsure,
                             float* __restrict alpha) {
  for (int i = 0; i < n; ++i) {
    const float more = high[i] < high[i + 1] ? high[i + 1] : high[i];
    const float most = more < high[i + 2] ? high[i + 2] : more;
    const float less = low[i] < low[i + 1] ? low[i] : low[i + 1];
    const float least = less < low[i + 2] ? less : low[i + 2];
    const int open = static_cast<int>(most > 0.0F) & static_cast<int>(least < 1.0F);
    const float soft = clamp01(p[i]);
    const float sure = snap(p[i]);
    unsure[i] = static_cast<std::uint8_t>(open);
    alpha[i] = open != 0 ? soft : sure;
  }
}

SharpMatte empty_matte(const Guide& guide) {
  return {std::make_unique_for_overwrite<float[]>(guide.cells()),
          std::make_unique_for_overwrite<float[]>(guide.cells()),
          std::make_unique_for_overwrite<std::uint8_t[]>(guide.cells())};
}

/// What the cells of a row start from: p where they are unsure, 0 or 1 elsewhere, and no trust.
void begin_row(const Guide& grid, std::span<const float> p, int y, std::vector<float>& scratch,
               SharpMatte& matte) {
  const auto width = static_cast<std::size_t>(grid.width);
  const auto row = [&](int j) { return p.data() + grid.at(0, std::clamp(j, 0, grid.height - 1)); };
  scratch.resize(2 * (width + 2));
  float* low = scratch.data();
  float* high = low + width + 2;
  range_across(row(y - 1), row(y), row(y + 1), grid.width, low + 1, high + 1);
  low[0] = low[1];
  high[0] = high[1];
  low[width + 1] = low[width];
  high[width + 1] = high[width];
  const std::size_t cell = grid.at(0, y);
  begin_cells(row(y), low, high, grid.width, matte.unsure.get() + cell, matte.alpha.get() + cell);
  std::fill_n(matte.trust.get() + cell, width, 0.0F);
}

/// Alpha of a cell by its models.
CUTOUT_INLINE float alpha_by(const float* model, std::ptrdiff_t stride, float r, float g, float b) {
  const float colour[3] = {r, g, b};
  const float plane[4] = {model[kA0 * stride], model[kA1 * stride], model[kA2 * stride],
                          model[kB * stride]};
  const float fore[3] = {model[kFore0 * stride], model[kFore1 * stride], model[kFore2 * stride]};
  const float back[3] = {model[kBack0 * stride], model[kBack1 * stride], model[kBack2 * stride]};
  return model_alpha(colour, plane, fore, back);
}

CUTOUT_SIMD void model_row(const float* __restrict models, int stride, const float* __restrict red,
                           const float* __restrict green, const float* __restrict blue,
                           const float* scale, const float* offset,
                           const std::uint8_t* __restrict unsure, int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const float value = alpha_by(models + i, stride, red[i] * scale[0] + offset[0],
                                 green[i] * scale[1] + offset[1], blue[i] * scale[2] + offset[2]);
    out[i] = unsure[i] != 0 ? value : out[i];
  }
}

/// The models' alpha of a tile into `sharp`.
void model_tile(const Guide& guide, const SharpMatte& matte, const Tile& tile, float* sharp) {
  const int width = tile.right - tile.left;
  LocalModel model(guide, matte.alpha.get(), tile.left, width, Models::kBoth);
  std::vector<float> row(static_cast<std::size_t>(kModelChannels * width));
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::size_t cell = guide.at(tile.left, y);
    model.row(y, row.data(), width);
    model_row(row.data(), width, guide.planes[0] + cell, guide.planes[1] + cell,
              guide.planes[2] + cell, guide.scale.data(), guide.offset.data(),
              matte.unsure.get() + cell, width, sharp + cell);
  }
}

/// A square of cells around a tile, its border repeated from the picture's. Loops run over whole
/// vectors: up to `kSpare` columns further than they need, into cells that nothing valid is made
/// of.
constexpr int kReach = 2 * kBlurRadius + kErrorRadius;
constexpr int kSide = kTile + 2 * kReach;
constexpr int kSpare = 16;
using Patch = std::array<float, static_cast<std::size_t>(kSide) * kSide + kSpare>;

constexpr int whole_vectors(int columns) { return (columns + kSpare - 1) / kSpare * kSpare; }

/// Rows and columns of a patch that are used: those of a tile and kReach around it.
struct Extent {
  int across;
  int down;
};

void load_patch(const Guide& grid, const float* plane, const Tile& tile, const Extent& extent,
                Patch& patch) {
  for (int j = 0; j < extent.down; ++j) {
    const int y = std::clamp(tile.top - kReach + j, 0, grid.height - 1);
    copy_cells(plane + grid.at(0, y), grid.width, tile.left - kReach, extent.across,
               patch.data() + static_cast<std::ptrdiff_t>(j) * kSide);
  }
}

/// Blurs what is at least `inset` from the patch's border; `inset` >= kBlurRadius.
CUTOUT_SIMD void blur_patch(const float* __restrict from, const Extent& extent, int inset,
                            const float* weights, float* __restrict lines, float* __restrict out) {
  const int right = inset + whole_vectors(extent.across - 2 * inset);
  for (int j = inset - kBlurRadius; j < extent.down - inset + kBlurRadius; ++j) {
    for (int i = inset; i < right; ++i) {
      lines[j * kSide + i] = blur9(from + j * kSide + i, 1, weights);
    }
  }
  for (int j = inset; j < extent.down - inset; ++j) {
    for (int i = inset; i < right; ++i) {
      out[j * kSide + i] = blur9(lines + j * kSide + i, kSide, weights);
    }
  }
}

/// p - blurred, `inset` from the patch's border.
CUTOUT_SIMD void change_patch(const float* __restrict p, const float* __restrict blurred,
                              const Extent& extent, int inset, float* __restrict out) {
  const int right = inset + whole_vectors(extent.across - 2 * inset);
  for (int j = inset; j < extent.down - inset; ++j) {
    for (int i = inset; i < right; ++i) {
      out[j * kSide + i] = p[j * kSide + i] - blurred[j * kSide + i];
    }
  }
}

/// Means of changes^2 over 5 x 5 cells, where all of them lie `inset` inside the patch; the
/// changes become their squares.
CUTOUT_SIMD void error_patch(float* __restrict changes, const Extent& extent, int inset,
                             float* __restrict lines, float* __restrict out) {
  const int inner = inset + kErrorRadius;
  const int right = inset + whole_vectors(extent.across - 2 * inset);
  const int inner_right = inner + whole_vectors(extent.across - 2 * inner);
  for (int j = inset; j < extent.down - inset; ++j) {
    for (int i = inset; i < right; ++i) changes[j * kSide + i] *= changes[j * kSide + i];
  }
  for (int j = inset; j < extent.down - inset; ++j) {
    for (int i = inner; i < inner_right; ++i) {
      lines[j * kSide + i] = sum5(changes + j * kSide + i, 1);
    }
  }
  for (int j = inner; j < extent.down - inner; ++j) {
    for (int i = inner; i < inner_right; ++i) {
      out[j * kSide + i] = sum5(lines + j * kSide + i, kSide) * (1.0F / 25.0F);
    }
  }
}

CUTOUT_SIMD void blend_patch(const float* __restrict p, const Extent& extent,
                             const float* __restrict network, const float* __restrict again,
                             float weight, float* __restrict model_to_trust,
                             float* __restrict sharp_to_blend) {
  constexpr int kInset = kBlurRadius + kErrorRadius;
  const int right = kInset + whole_vectors(extent.across - 2 * kInset);
  for (int j = kInset; j < extent.down - kInset; ++j) {
    for (int i = kInset; i < right; ++i) {
      const int at = j * kSide + i;
      const float trust = trust_of(network[at], again[at], model_to_trust[at], weight);
      model_to_trust[at] = trust;
      sharp_to_blend[at] = p[at] + trust * (sharp_to_blend[at] - p[at]);
    }
  }
}

struct Patches {
  Patch p{};
  Patch sharp{};
  Patch lines{};
  Patch blurred{};
  Patch changes{};
  Patch network{};
  Patch again{};
  Patch model{};
};

/// What blurring tells of an answer, whatever the colours say; 0 where it is sure.
struct Softness {
  std::unique_ptr<float[]> network;  // mean of (p - blur(p))^2 over 5 x 5 cells
  std::unique_ptr<float[]> again;    // the share of it that blurring changes again

  explicit Softness(const Guide& grid)
      : network(std::make_unique_for_overwrite<float[]>(grid.cells())),
        again(std::make_unique_for_overwrite<float[]>(grid.cells())) {}
};

CUTOUT_SIMD void soften_row(const float* __restrict first, const float* __restrict second,
                            const std::uint8_t* __restrict unsure, bool corrected, int n,
                            float* __restrict network, float* __restrict again) {
  for (int i = 0; i < n; ++i) {
    const float share = share_of(first[i], second[i], corrected);
    network[i] = unsure[i] != 0 ? first[i] : 0.0F;
    again[i] = unsure[i] != 0 ? share : 0.0F;
  }
}

void soften_tile(const Guide& grid, const float* p, const BlurWeights& weights, const Tile& tile,
                 const std::uint8_t* unsure, Patches& at, Softness& softness) {
  const Extent extent{tile.right - tile.left + 2 * kReach, tile.bottom - tile.top + 2 * kReach};
  constexpr int kAgain = 2 * kBlurRadius;
  static_assert(kAgain + kErrorRadius <= kReach);
  load_patch(grid, p, tile, extent, at.p);
  blur_patch(at.p.data(), extent, kBlurRadius, weights.data(), at.lines.data(), at.blurred.data());
  change_patch(at.p.data(), at.blurred.data(), extent, kBlurRadius, at.changes.data());
  blur_patch(at.changes.data(), extent, kAgain, weights.data(), at.lines.data(), at.blurred.data());
  change_patch(at.changes.data(), at.blurred.data(), extent, kAgain, at.sharp.data());
  error_patch(at.changes.data(), extent, kBlurRadius, at.lines.data(), at.network.data());
  error_patch(at.sharp.data(), extent, kAgain, at.lines.data(), at.model.data());
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::size_t cell = grid.at(tile.left, y);
    const std::ptrdiff_t i = (y - tile.top + kReach) * kSide + kReach;
    soften_row(at.network.data() + i, at.model.data() + i, unsure + cell, grid.settled != nullptr,
               tile.right - tile.left, softness.network.get() + cell, softness.again.get() + cell);
  }
}

/// What a round makes of n cells, from the patches' rows; sure cells keep what they have.
CUTOUT_SIMD void settle_row(const float* __restrict p, const float* __restrict blend,
                            const float* __restrict blurred, const float* __restrict trusted,
                            const float* __restrict again, float back,
                            const std::uint8_t* __restrict unsure, int n, float* __restrict alpha,
                            float* __restrict trust) {
  for (int i = 0; i < n; ++i) {
    const float value = clamp01(blend[i] + lacking(again[i], back) * (p[i] - blurred[i]));
    alpha[i] = unsure[i] != 0 ? value : alpha[i];
    trust[i] = unsure[i] != 0 ? trusted[i] : trust[i];
  }
}

/// One round: `p` and the models' answer `sharp` -> alpha and trust of the tile's unsure cells.
void weigh_tile(const Guide& grid, const float* p, const float* sharp, const Softness& softness,
                const BlurWeights& weights, float back, const Tile& tile, Patches& at,
                SharpMatte& matte) {
  const Extent extent{tile.right - tile.left + 2 * kReach, tile.bottom - tile.top + 2 * kReach};
  load_patch(grid, p, tile, extent, at.p);
  load_patch(grid, sharp, tile, extent, at.sharp);
  load_patch(grid, softness.network.get(), tile, extent, at.network);
  load_patch(grid, softness.again.get(), tile, extent, at.again);
  blur_patch(at.sharp.data(), extent, kBlurRadius, weights.data(), at.lines.data(),
             at.blurred.data());
  change_patch(at.p.data(), at.blurred.data(), extent, kBlurRadius, at.changes.data());
  error_patch(at.changes.data(), extent, kBlurRadius, at.lines.data(), at.model.data());
  blend_patch(at.p.data(), extent, at.network.data(), at.again.data(), model_error(grid),
              at.model.data(), at.sharp.data());
  if (back > 0.0F) {
    blur_patch(at.sharp.data(), extent, kReach, weights.data(), at.lines.data(), at.blurred.data());
  }
  const Patch& blurred = back > 0.0F ? at.blurred : at.p;  // nothing is lacking of p itself
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::size_t cell = grid.at(tile.left, y);
    const std::ptrdiff_t i = (y - tile.top + kReach) * kSide + kReach;
    settle_row(at.p.data() + i, at.sharp.data() + i, blurred.data() + i, at.model.data() + i,
               at.again.data() + i, back, matte.unsure.get() + cell, tile.right - tile.left,
               matte.alpha.get() + cell, matte.trust.get() + cell);
  }
}

}  // namespace

SharpMatte sharpen_matte(const Guide& guide, std::span<const float> p, float enlargement,
                         ThreadPool& pool) {
  SharpMatte matte = empty_matte(guide);
  const auto start = std::make_unique_for_overwrite<float[]>(guide.cells());
  const auto sharp = std::make_unique_for_overwrite<float[]>(guide.cells());
  Softness softness(guide);
  pool.parallel_for(static_cast<std::size_t>(guide.height), kRowGrain,
                    [&](std::size_t begin, std::size_t end) {
                      std::vector<float> scratch;
                      for (std::size_t y = begin; y < end; ++y) {
                        begin_row(guide, p, static_cast<int>(y), scratch, matte);
                        const std::size_t cell = guide.at(0, static_cast<int>(y));
                        const float* row = matte.alpha.get() + cell;
                        std::copy_n(row, guide.width, start.get() + cell);
                        std::copy_n(row, guide.width, sharp.get() + cell);
                        std::fill_n(softness.network.get() + cell, guide.width, 0.0F);
                        std::fill_n(softness.again.get() + cell, guide.width, 0.0F);
                      }
                    });
  std::vector<Tile> tiles = tiles_near(matte.unsure.get(), guide.width, guide.height, 0);
  if (tiles.empty()) return matte;
  for (Tile& tile : tiles) tile = marked_part(tile, matte.unsure.get(), guide.width);
  const BlurWeights weights =
      blur_weights(guide.blur > 0.0F ? guide.blur : blur_of(p, guide.width, guide.height, pool));
  const float back = added_back(guide, enlargement);
  pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
    Patches patches;
    for (std::size_t i = begin; i < end; ++i) {
      soften_tile(guide, start.get(), weights, tiles[i], matte.unsure.get(), patches, softness);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) model_tile(guide, matte, tiles[i], sharp.get());
    });
    pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
      Patches patches;
      for (std::size_t i = begin; i < end; ++i) {
        weigh_tile(guide, start.get(), sharp.get(), softness, weights, back, tiles[i], patches,
                   matte);
      }
    });
  }
  if (guide.settled != nullptr) {
    pool.parallel_for(tiles.size(), kTileGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Tile& tile = tiles[i];
        for (int y = tile.top; y < tile.bottom; ++y) {
          const std::size_t cell = guide.at(tile.left, y);
          return_row(guide.settled + cell, start.get() + cell, matte.unsure.get() + cell,
                     tile.right - tile.left, matte.alpha.get() + cell);
        }
      }
    });
  }
  pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) doubt_tile(guide, tiles[i], matte);
  });
  return matte;
}

namespace {

/// A plane with its border repeated kReach cells beyond the picture, every value by its definition.
struct Wide {
  int width = 0;  // with the border
  int height = 0;
  std::vector<float> values;

  explicit Wide(const Guide& grid)
      : width(grid.width + 2 * kReach), height(grid.height + 2 * kReach) {
    values.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  }
  Wide(const Guide& grid, const std::vector<float>& plane) : Wide(grid) {
    each(0, [&](int x, int y) {
      return plane[grid.at(std::clamp(x - kReach, 0, grid.width - 1),
                           std::clamp(y - kReach, 0, grid.height - 1))];
    });
  }
  float* at(int x, int y) { return values.data() + static_cast<std::ptrdiff_t>(y) * width + x; }
  template <typename Value>
  void each(int inset, const Value& value) {
    for (int y = inset; y < height - inset; ++y) {
      for (int x = inset; x < width - inset; ++x) *at(x, y) = value(x, y);
    }
  }
};

Wide blur_scalar(const Guide& grid, Wide& plane, int inset, const BlurWeights& weights) {
  Wide lines(grid);
  Wide out(grid);
  for (int y = 0; y < lines.height; ++y) {
    for (int x = kBlurRadius; x < lines.width - kBlurRadius; ++x) {
      *lines.at(x, y) = blur9(plane.at(x, y), 1, weights.data());
    }
  }
  out.each(inset, [&](int x, int y) { return blur9(lines.at(x, y), lines.width, weights.data()); });
  return out;
}

/// p - blur(plane), `inset` from the border.
Wide change_scalar(const Guide& grid, Wide& p, Wide& plane, int inset, const BlurWeights& weights) {
  Wide blurred = blur_scalar(grid, plane, inset, weights);
  Wide out(grid);
  out.each(inset, [&](int x, int y) { return *p.at(x, y) - *blurred.at(x, y); });
  return out;
}

/// Means of changes^2 over 5 x 5 cells.
Wide error_scalar(const Guide& grid, Wide& changes, int inset) {
  Wide squares(grid);
  Wide out(grid);
  squares.each(inset, [&](int x, int y) { return *changes.at(x, y) * *changes.at(x, y); });
  out.each(inset + kErrorRadius, [&](int x, int y) {
    std::array<float, 2 * kErrorRadius + 1> column{};
    for (int j = 0; j <= 2 * kErrorRadius; ++j) {
      column[static_cast<std::size_t>(j)] = sum5(squares.at(x, y - kErrorRadius + j), 1);
    }
    return sum5(column.data() + kErrorRadius, 1) * (1.0F / 25.0F);
  });
  return out;
}

}  // namespace

SharpMatte sharpen_matte_scalar(const Guide& guide, std::span<const float> p, float enlargement) {
  SharpMatte matte = empty_matte(guide);
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t cell = guide.at(x, y);
      const bool unsure = is_unsure(p, guide.width, guide.height, x, y);
      matte.unsure[cell] = unsure ? 1 : 0;
      matte.alpha[cell] = unsure ? clamp01(p[cell]) : snap(p[cell]);
    }
  }
  std::fill_n(matte.trust.get(), guide.cells(), 0.0F);
  const std::vector<float> start(matte.alpha.get(), matte.alpha.get() + guide.cells());
  const BlurWeights weights =
      blur_weights(guide.blur > 0.0F ? guide.blur : blur_of_scalar(p, guide.width, guide.height));
  const float back = added_back(guide, enlargement);
  Wide network(guide, start);
  Wide changes = change_scalar(guide, network, network, kBlurRadius, weights);
  Wide again = change_scalar(guide, changes, changes, 2 * kBlurRadius, weights);
  Wide exact_error = error_scalar(guide, changes, kBlurRadius);
  Wide again_error = error_scalar(guide, again, 2 * kBlurRadius);
  std::vector<float> errors(guide.cells());
  std::vector<float> shares(guide.cells());
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t cell = guide.at(x, y);
      if (matte.unsure[cell] == 0) continue;
      errors[cell] = *exact_error.at(x + kReach, y + kReach);
      shares[cell] =
          share_of(errors[cell], *again_error.at(x + kReach, y + kReach), guide.settled != nullptr);
    }
  }
  Wide network_error(guide, errors);
  Wide again_share(guide, shares);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> sharp = start;
    for (int y = 0; y < guide.height; ++y) {
      for (int x = 0; x < guide.width; ++x) {
        const std::size_t cell = guide.at(x, y);
        if (matte.unsure[cell] == 0) continue;
        const auto model = local_model_scalar(guide, matte.alpha.get(), x, y);
        sharp[cell] = alpha_by(model.data(), 1, guide.colour(0, cell), guide.colour(1, cell),
                               guide.colour(2, cell));
      }
    }
    Wide answer(guide, sharp);
    Wide answer_changes = change_scalar(guide, network, answer, kBlurRadius, weights);
    Wide answer_error = error_scalar(guide, answer_changes, kBlurRadius);
    Wide blend(guide);
    const auto trust = [&](int x, int y) {
      return trust_of(*network_error.at(x, y), *again_share.at(x, y), *answer_error.at(x, y),
                      model_error(guide));
    };
    blend.each(kBlurRadius + kErrorRadius, [&](int x, int y) {
      return *network.at(x, y) + trust(x, y) * (*answer.at(x, y) - *network.at(x, y));
    });
    Wide blurred = blur_scalar(guide, blend, kReach, weights);
    for (int y = 0; y < guide.height; ++y) {
      for (int x = 0; x < guide.width; ++x) {
        const std::size_t cell = guide.at(x, y);
        if (matte.unsure[cell] == 0) continue;
        const int wx = x + kReach;
        const int wy = y + kReach;
        const float lack = back > 0.0F ? start[cell] - *blurred.at(wx, wy) : 0.0F;
        matte.alpha[cell] = clamp01(*blend.at(wx, wy) + lacking(shares[cell], back) * lack);
        matte.trust[cell] = trust(wx, wy);
      }
    }
  }
  for (std::size_t cell = 0; guide.settled != nullptr && cell < guide.cells(); ++cell) {
    if (matte.unsure[cell] == 0) continue;
    matte.alpha[cell] += guide.settled[cell] * (start[cell] - matte.alpha[cell]);
  }
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t cell = guide.at(x, y);
      if (matte.unsure[cell] == 0) continue;
      matte.trust[cell] *= edge_at(matte.alpha.get(), guide.width, guide.height, x, y);
    }
  }
  return matte;
}

}  // namespace cutout
