#include "matte/deblur.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/simd.h"
#include "matte/blur.h"
#include "matte/local_model.h"
#include "matte/math/certainty.h"
#include "matte/tiles.h"

namespace cutout {

namespace {

constexpr int kRounds = 3;
constexpr int kBlurRadius = 4;
constexpr int kErrorRadius = 2;
// Weight of the models' error against the network's; more where colour sampling ran.
constexpr float kModelError = 0.15F;
constexpr float kModelErrorCorrected = 0.3F;
// Change of the output by blurring (mean square of alpha) below which there is no confidence:
// rounding to 8 bits, noise and wide gentle slopes stay below it.
constexpr float kSoft = 2e-4F;
// Share s of the change by blurring that blurring again changes: less than 0.08 where an edge is
// twice as wide as the network's blur, 0.18 at a step, 0.3 to 0.9 among strands.
constexpr float kWide = 0.08F;
constexpr float kFine = 0.16F;
// s where colour sampling ran: above every bound, so that s does not matter.
constexpr float kUnknownShare = 1e3F;
// Added to the error (mean square of alpha), so that rounding does not define s.
constexpr float kRounding = 2e-5F;
// Models' error, in units of the network's, above which the confidence falls: kFit, or kStrands s^2
// where that is more.
constexpr float kFit = 0.8F;
constexpr float kStrands = 12.0F;
// Share of the residual that is held back at wide edges.
constexpr float kHeldBack = 0.4F;
// No edge: alpha of a neighbourhood is everywhere this near to 0, or to 1.
constexpr float kEdge = 0.1F;
// Enlargement from which on the whole residual is added.
constexpr float kWhole = 4.0F;
constexpr std::size_t kRowGrain = 32;  // rows of network pixels
constexpr std::size_t kTileGrain = 16;

/// Share of the residual that is added: 0..1.
inline float added_back(const Guide& guide, float enlargement) {
  if (guide.sample_confidence != nullptr) return 0.0F;
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

/// Nine taps, added in a fixed order.
CUTOUT_INLINE float blur9(const float* at, std::ptrdiff_t step, const float* w) {
  return ((w[0] * at[0] + w[1] * (at[-step] + at[step])) + w[2] * (at[-2 * step] + at[2 * step])) +
         (w[3] * (at[-3 * step] + at[3 * step]) + w[4] * (at[-4 * step] + at[4 * step]));
}

inline float sum5(const float* at, std::ptrdiff_t step) {
  return (at[0] + (at[-step] + at[step])) + (at[-2 * step] + at[2 * step]);
}

/// Ramp of s: 0 at wide edges, 1 at steps and strands.
CUTOUT_INLINE float fine_of(float again) { return clamp01((again - kWide) / (kFine - kWide)); }

inline float model_error(const Guide& guide) {
  return guide.sample_confidence != nullptr ? kModelErrorCorrected : kModelError;
}

/// s from the errors of blurring once and twice.
CUTOUT_INLINE float share_of(float network, float again, bool corrected) {
  const float share = again / (network + kRounding);
  return corrected ? kUnknownShare : share;
}

/// `weight`: model_error.
CUTOUT_INLINE float confidence_of(float network, float again, float model, float weight) {
  const float strands = kStrands * again * again;
  const float most = (strands > kFit ? strands : kFit) * network;
  const float fit = model > most ? most / model : 1.0F;
  return fine_of(again) * fit * network * network /
         (network * (network + weight * model) + kSoft * kSoft);
}

/// Share of the residual that is added to a network pixel; `back` is added_back().
CUTOUT_INLINE float residual_share(float again, float back) {
  return back * (1.0F - kHeldBack * (1.0F - fine_of(again)));
}

/// Edge strength of a neighbourhood from its least and greatest alpha: 0..1.
CUTOUT_INLINE float edge_between(float least, float most) {
  const float background = most / kEdge;
  const float foreground = (1.0F - least) / kEdge;
  return (background < 1.0F ? background : 1.0F) * (foreground < 1.0F ? foreground : 1.0F);
}

/// Edge strength of a network pixel and its eight neighbours.
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

/// Multiplies the confidence of n network pixels with the edge strength of their neighbourhoods.
/// The three rows of alpha start one column before them.
CUTOUT_SIMD void suppress_row(const float* __restrict above, const float* __restrict here,
                              const float* __restrict below,
                              const std::uint8_t* __restrict uncertain, int n,
                              float* __restrict confidence) {
  for (int i = 0; i < n; ++i) {
    float least = 1.0F;
    float most = 0.0F;
    for (int k = i; k < i + 3; ++k) {
      for (const float value : {above[k], here[k], below[k]}) {
        least = value < least ? value : least;
        most = value > most ? value : most;
      }
    }
    const float suppressed = confidence[i] * edge_between(least, most);
    confidence[i] = uncertain[i] != 0 ? suppressed : confidence[i];
  }
}

/// Moves uncertain network pixels back to p by the sample confidence.
CUTOUT_SIMD void return_to_samples(const float* __restrict sample_confidence,
                                   const float* __restrict p,
                                   const std::uint8_t* __restrict uncertain, int n,
                                   float* __restrict alpha) {
  for (int i = 0; i < n; ++i) {
    const float value = alpha[i] + sample_confidence[i] * (p[i] - alpha[i]);
    alpha[i] = uncertain[i] != 0 ? value : alpha[i];
  }
}

/// Suppresses the confidence of a tile's uncertain network pixels where there is no edge.
void suppress_tile(const Guide& grid, const Tile& tile, DeblurredMatte& matte) {
  std::array<std::array<float, kTile + 2>, 3> rows{};  // by row modulo 3
  const int n = tile.right - tile.left;
  const auto load = [&](int y) -> const float* {
    float* row = rows[static_cast<std::size_t>(y + 3) % 3].data();
    const int inside = std::clamp(y, 0, grid.height - 1);
    copy_padded(matte.alpha.get() + grid.at(0, inside), grid.width, tile.left - 1, n + 2, row);
    return row;
  };
  const float* above = load(tile.top - 1);
  const float* here = load(tile.top);
  for (int y = tile.top; y < tile.bottom; ++y) {
    const float* below = load(y + 1);
    const std::size_t index = grid.at(tile.left, y);
    suppress_row(above, here, below, matte.uncertain.get() + index, n,
                 matte.confidence.get() + index);
    above = here;
    here = below;
  }
}

/// False if the network pixel and its eight neighbours are all certain background or all certain
/// foreground.
inline bool is_uncertain(std::span<const float> p, int width, int height, int x, int y) {
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

/// Minimum and maximum snapped value of each column of three rows.
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

/// Start values of n network pixels; `low` and `high` have one more value at either end.
CUTOUT_SIMD void begin_pixels(const float* __restrict p, const float* __restrict low,
                              const float* __restrict high, int n,
                              std::uint8_t* __restrict uncertain, float* __restrict alpha) {
  for (int i = 0; i < n; ++i) {
    const float more = high[i] < high[i + 1] ? high[i + 1] : high[i];
    const float most = more < high[i + 2] ? high[i + 2] : more;
    const float less = low[i] < low[i + 1] ? low[i] : low[i + 1];
    const float least = less < low[i + 2] ? less : low[i + 2];
    const int open = static_cast<int>(most > 0.0F) & static_cast<int>(least < 1.0F);
    const float soft = clamp01(p[i]);
    const float certain = snap(p[i]);
    uncertain[i] = static_cast<std::uint8_t>(open);
    alpha[i] = open != 0 ? soft : certain;
  }
}

DeblurredMatte empty_matte(const Guide& guide) {
  return {make_large_array<float>(guide.size()), make_large_array<float>(guide.size()),
          make_large_array<std::uint8_t>(guide.size())};
}

/// Start values of a row: alpha is p where uncertain, 0 or 1 elsewhere; confidence is 0.
void begin_row(const Guide& grid, std::span<const float> p, int y, std::vector<float>& scratch,
               DeblurredMatte& matte) {
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
  const std::size_t index = grid.at(0, y);
  begin_pixels(row(y), low, high, grid.width, matte.uncertain.get() + index,
               matte.alpha.get() + index);
  std::fill_n(matte.confidence.get() + index, width, 0.0F);
}

/// Alpha of a network pixel by the local models.
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
                           const std::uint8_t* __restrict uncertain, int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const float value = alpha_by(models + i, stride, red[i] * scale[0] + offset[0],
                                 green[i] * scale[1] + offset[1], blue[i] * scale[2] + offset[2]);
    out[i] = uncertain[i] != 0 ? value : out[i];
  }
}

/// Writes the models' alpha of a tile's uncertain network pixels to `estimate`.
void model_tile(const Guide& guide, const DeblurredMatte& matte, const Tile& tile,
                float* estimate) {
  const int width = tile.right - tile.left;
  LocalModel model(guide, matte.alpha.get(), tile.left, width, Models::kBoth);
  std::vector<float> row(static_cast<std::size_t>(kModelChannels * width));
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::size_t index = guide.at(tile.left, y);
    model.row(y, row.data(), width);
    model_row(row.data(), width, guide.planes[0] + index, guide.planes[1] + index,
              guide.planes[2] + index, guide.scale.data(), guide.offset.data(),
              matte.uncertain.get() + index, width, estimate + index);
  }
}

/// A tile and kRadius network pixels around it, the image's border repeated. Loops run over whole
/// vectors, up to kSpare columns too far; no result depends on those.
constexpr int kRadius = 2 * kBlurRadius + kErrorRadius;
constexpr int kSide = kTile + 2 * kRadius;
constexpr int kSpare = 16;
using Patch = std::array<float, static_cast<std::size_t>(kSide) * kSide + kSpare>;

constexpr int whole_vectors(int columns) { return (columns + kSpare - 1) / kSpare * kSpare; }

/// Used columns and rows of a patch.
struct Extent {
  int across;
  int down;
};

void load_patch(const Guide& grid, const float* plane, const Tile& tile, const Extent& extent,
                Patch& patch) {
  for (int j = 0; j < extent.down; ++j) {
    const int y = std::clamp(tile.top - kRadius + j, 0, grid.height - 1);
    copy_padded(plane + grid.at(0, y), grid.width, tile.left - kRadius, extent.across,
                patch.data() + static_cast<std::ptrdiff_t>(j) * kSide);
  }
}

/// Blurs the part that is at least `inset` >= kBlurRadius from the patch's border.
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

/// out = p - blurred, `inset` from the patch's border.
CUTOUT_SIMD void change_patch(const float* __restrict p, const float* __restrict blurred,
                              const Extent& extent, int inset, float* __restrict out) {
  const int right = inset + whole_vectors(extent.across - 2 * inset);
  for (int j = inset; j < extent.down - inset; ++j) {
    for (int i = inset; i < right; ++i) {
      out[j * kSide + i] = p[j * kSide + i] - blurred[j * kSide + i];
    }
  }
}

/// Means of changes^2 over 5 x 5 network pixels that all lie `inset` inside the patch. The changes
/// are squared in place.
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
                             float weight, float* __restrict error_to_confidence,
                             float* __restrict estimate_to_blend) {
  constexpr int kInset = kBlurRadius + kErrorRadius;
  const int right = kInset + whole_vectors(extent.across - 2 * kInset);
  for (int j = kInset; j < extent.down - kInset; ++j) {
    for (int i = kInset; i < right; ++i) {
      const int at = j * kSide + i;
      const float confidence =
          confidence_of(network[at], again[at], error_to_confidence[at], weight);
      error_to_confidence[at] = confidence;
      estimate_to_blend[at] = p[at] + confidence * (estimate_to_blend[at] - p[at]);
    }
  }
}

/// 87 kB of one tile. Not initialised: clearing it would cost as much as a step.
struct Patches {
  Patch p;
  Patch estimate;
  Patch lines;
  Patch blurred;
  Patch changes;
  Patch network;
  Patch again;
  Patch model;
};

/// Errors of the output against its own blur, independent of the guide; 0 where not uncertain.
struct Softness {
  LargeArray<float> network;  // mean of (p - blur(p))^2 over 5 x 5 network pixels
  LargeArray<float> again;    // s

  explicit Softness(const Guide& grid)
      : network(make_large_array<float>(grid.size())),
        again(make_large_array<float>(grid.size())) {}
};

CUTOUT_SIMD void softness_row(const float* __restrict first, const float* __restrict second,
                              const std::uint8_t* __restrict uncertain, bool corrected, int n,
                              float* __restrict network, float* __restrict again) {
  for (int i = 0; i < n; ++i) {
    const float share = share_of(first[i], second[i], corrected);
    network[i] = uncertain[i] != 0 ? first[i] : 0.0F;
    again[i] = uncertain[i] != 0 ? share : 0.0F;
  }
}

void softness_tile(const Guide& grid, const float* p, const BlurWeights& weights, const Tile& tile,
                   const std::uint8_t* uncertain, Patches& at, Softness& softness) {
  const Extent extent{tile.right - tile.left + 2 * kRadius, tile.bottom - tile.top + 2 * kRadius};
  constexpr int kAgain = 2 * kBlurRadius;
  static_assert(kAgain + kErrorRadius <= kRadius);
  load_patch(grid, p, tile, extent, at.p);
  blur_patch(at.p.data(), extent, kBlurRadius, weights.data(), at.lines.data(), at.blurred.data());
  change_patch(at.p.data(), at.blurred.data(), extent, kBlurRadius, at.changes.data());
  blur_patch(at.changes.data(), extent, kAgain, weights.data(), at.lines.data(), at.blurred.data());
  change_patch(at.changes.data(), at.blurred.data(), extent, kAgain, at.estimate.data());
  error_patch(at.changes.data(), extent, kBlurRadius, at.lines.data(), at.network.data());
  error_patch(at.estimate.data(), extent, kAgain, at.lines.data(), at.model.data());
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::size_t index = grid.at(tile.left, y);
    const std::ptrdiff_t i = (y - tile.top + kRadius) * kSide + kRadius;
    softness_row(at.network.data() + i, at.model.data() + i, uncertain + index,
                 grid.sample_confidence != nullptr, tile.right - tile.left,
                 softness.network.get() + index, softness.again.get() + index);
  }
}

/// Result of a round for n network pixels, from rows of the patches; only uncertain ones change.
CUTOUT_SIMD void update_row(const float* __restrict p, const float* __restrict blend,
                            const float* __restrict blurred, const float* __restrict new_confidence,
                            const float* __restrict again, float back,
                            const std::uint8_t* __restrict uncertain, int n,
                            float* __restrict alpha, float* __restrict confidence) {
  for (int i = 0; i < n; ++i) {
    const float value = clamp01(blend[i] + residual_share(again[i], back) * (p[i] - blurred[i]));
    alpha[i] = uncertain[i] != 0 ? value : alpha[i];
    confidence[i] = uncertain[i] != 0 ? new_confidence[i] : confidence[i];
  }
}

/// One round: `p` and the models' `estimate` -> alpha and confidence of a tile's uncertain network
/// pixels.
void update_tile(const Guide& grid, const float* p, const float* estimate, const Softness& softness,
                 const BlurWeights& weights, float back, const Tile& tile, Patches& at,
                 DeblurredMatte& matte) {
  const Extent extent{tile.right - tile.left + 2 * kRadius, tile.bottom - tile.top + 2 * kRadius};
  load_patch(grid, p, tile, extent, at.p);
  load_patch(grid, estimate, tile, extent, at.estimate);
  load_patch(grid, softness.network.get(), tile, extent, at.network);
  load_patch(grid, softness.again.get(), tile, extent, at.again);
  blur_patch(at.estimate.data(), extent, kBlurRadius, weights.data(), at.lines.data(),
             at.blurred.data());
  change_patch(at.p.data(), at.blurred.data(), extent, kBlurRadius, at.changes.data());
  error_patch(at.changes.data(), extent, kBlurRadius, at.lines.data(), at.model.data());
  blend_patch(at.p.data(), extent, at.network.data(), at.again.data(), model_error(grid),
              at.model.data(), at.estimate.data());
  if (back > 0.0F) {
    blur_patch(at.estimate.data(), extent, kRadius, weights.data(), at.lines.data(),
               at.blurred.data());
  }
  const Patch& blurred = back > 0.0F ? at.blurred : at.p;  // p - p: no residual
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::size_t index = grid.at(tile.left, y);
    const std::ptrdiff_t i = (y - tile.top + kRadius) * kSide + kRadius;
    update_row(at.p.data() + i, at.estimate.data() + i, blurred.data() + i, at.model.data() + i,
               at.again.data() + i, back, matte.uncertain.get() + index, tile.right - tile.left,
               matte.alpha.get() + index, matte.confidence.get() + index);
  }
}

}  // namespace

DeblurredMatte deblur_matte(const Guide& guide, std::span<const float> p, float enlargement,
                            ThreadPool& pool) {
  DeblurredMatte matte = empty_matte(guide);
  const auto start = make_large_array<float>(guide.size());
  const auto estimate = make_large_array<float>(guide.size());
  Softness softness(guide);
  pool.parallel_for(static_cast<std::size_t>(guide.height), kRowGrain,
                    [&](std::size_t begin, std::size_t end) {
                      std::vector<float> scratch;
                      for (std::size_t y = begin; y < end; ++y) {
                        begin_row(guide, p, static_cast<int>(y), scratch, matte);
                        const std::size_t index = guide.at(0, static_cast<int>(y));
                        const float* row = matte.alpha.get() + index;
                        std::copy_n(row, guide.width, start.get() + index);
                        std::copy_n(row, guide.width, estimate.get() + index);
                        std::fill_n(softness.network.get() + index, guide.width, 0.0F);
                        std::fill_n(softness.again.get() + index, guide.width, 0.0F);
                      }
                    });
  std::vector<Tile> tiles = tiles_near(matte.uncertain.get(), guide.width, guide.height, 0);
  if (tiles.empty()) return matte;
  for (Tile& tile : tiles) tile = marked_part(tile, matte.uncertain.get(), guide.width);
  const BlurWeights weights = blur_weights(
      guide.blur > 0.0F ? guide.blur : estimate_blur(p, guide.width, guide.height, pool));
  const float back = added_back(guide, enlargement);
  pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
    Patches patches;
    for (std::size_t i = begin; i < end; ++i) {
      softness_tile(guide, start.get(), weights, tiles[i], matte.uncertain.get(), patches,
                    softness);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) model_tile(guide, matte, tiles[i], estimate.get());
    });
    pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
      Patches patches;
      for (std::size_t i = begin; i < end; ++i) {
        update_tile(guide, start.get(), estimate.get(), softness, weights, back, tiles[i], patches,
                    matte);
      }
    });
  }
  if (guide.sample_confidence != nullptr) {
    pool.parallel_for(tiles.size(), kTileGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Tile& tile = tiles[i];
        for (int y = tile.top; y < tile.bottom; ++y) {
          const std::size_t index = guide.at(tile.left, y);
          return_to_samples(guide.sample_confidence + index, start.get() + index,
                            matte.uncertain.get() + index, tile.right - tile.left,
                            matte.alpha.get() + index);
        }
      }
    });
  }
  pool.parallel_for(tiles.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) suppress_tile(guide, tiles[i], matte);
  });
  return matte;
}

namespace {

/// A plane with its border repeated kRadius network pixels beyond the image, for the scalar
/// version.
struct Wide {
  int width = 0;  // with the border
  int height = 0;
  std::vector<float> values;

  explicit Wide(const Guide& grid)
      : width(grid.width + 2 * kRadius), height(grid.height + 2 * kRadius) {
    values.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  }
  Wide(const Guide& grid, const std::vector<float>& plane) : Wide(grid) {
    each(0, [&](int x, int y) {
      return plane[grid.at(std::clamp(x - kRadius, 0, grid.width - 1),
                           std::clamp(y - kRadius, 0, grid.height - 1))];
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

/// Means of changes^2 over 5 x 5 network pixels.
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

DeblurredMatte deblur_matte_scalar(const Guide& guide, std::span<const float> p,
                                   float enlargement) {
  DeblurredMatte matte = empty_matte(guide);
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t index = guide.at(x, y);
      const bool uncertain = is_uncertain(p, guide.width, guide.height, x, y);
      matte.uncertain[index] = uncertain ? 1 : 0;
      matte.alpha[index] = uncertain ? clamp01(p[index]) : snap(p[index]);
    }
  }
  std::fill_n(matte.confidence.get(), guide.size(), 0.0F);
  const std::vector<float> start(matte.alpha.get(), matte.alpha.get() + guide.size());
  const BlurWeights weights = blur_weights(
      guide.blur > 0.0F ? guide.blur : estimate_blur_scalar(p, guide.width, guide.height));
  const float back = added_back(guide, enlargement);
  Wide network(guide, start);
  Wide changes = change_scalar(guide, network, network, kBlurRadius, weights);
  Wide again = change_scalar(guide, changes, changes, 2 * kBlurRadius, weights);
  Wide exact_error = error_scalar(guide, changes, kBlurRadius);
  Wide again_error = error_scalar(guide, again, 2 * kBlurRadius);
  std::vector<float> errors(guide.size());
  std::vector<float> shares(guide.size());
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t index = guide.at(x, y);
      if (matte.uncertain[index] == 0) continue;
      errors[index] = *exact_error.at(x + kRadius, y + kRadius);
      shares[index] = share_of(errors[index], *again_error.at(x + kRadius, y + kRadius),
                               guide.sample_confidence != nullptr);
    }
  }
  Wide network_error(guide, errors);
  Wide again_share(guide, shares);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> estimate = start;
    for (int y = 0; y < guide.height; ++y) {
      for (int x = 0; x < guide.width; ++x) {
        const std::size_t index = guide.at(x, y);
        if (matte.uncertain[index] == 0) continue;
        const auto model = local_model_scalar(guide, matte.alpha.get(), x, y);
        estimate[index] = alpha_by(model.data(), 1, guide.colour(0, index), guide.colour(1, index),
                                   guide.colour(2, index));
      }
    }
    Wide modelled(guide, estimate);
    Wide modelled_changes = change_scalar(guide, network, modelled, kBlurRadius, weights);
    Wide modelled_error = error_scalar(guide, modelled_changes, kBlurRadius);
    Wide blend(guide);
    const auto confidence = [&](int x, int y) {
      return confidence_of(*network_error.at(x, y), *again_share.at(x, y), *modelled_error.at(x, y),
                           model_error(guide));
    };
    blend.each(kBlurRadius + kErrorRadius, [&](int x, int y) {
      return *network.at(x, y) + confidence(x, y) * (*modelled.at(x, y) - *network.at(x, y));
    });
    Wide blurred = blur_scalar(guide, blend, kRadius, weights);
    for (int y = 0; y < guide.height; ++y) {
      for (int x = 0; x < guide.width; ++x) {
        const std::size_t index = guide.at(x, y);
        if (matte.uncertain[index] == 0) continue;
        const int wx = x + kRadius;
        const int wy = y + kRadius;
        const float residual = back > 0.0F ? start[index] - *blurred.at(wx, wy) : 0.0F;
        matte.alpha[index] =
            clamp01(*blend.at(wx, wy) + residual_share(shares[index], back) * residual);
        matte.confidence[index] = confidence(wx, wy);
      }
    }
  }
  for (std::size_t index = 0; guide.sample_confidence != nullptr && index < guide.size(); ++index) {
    if (matte.uncertain[index] == 0) continue;
    matte.alpha[index] += guide.sample_confidence[index] * (start[index] - matte.alpha[index]);
  }
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t index = guide.at(x, y);
      if (matte.uncertain[index] == 0) continue;
      matte.confidence[index] *= edge_at(matte.alpha.get(), guide.width, guide.height, x, y);
    }
  }
  return matte;
}

}  // namespace cutout
