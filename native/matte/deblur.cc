#include "matte/deblur.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/simd.h"
#include "matte/blur_estimate.h"
#include "matte/conjugate_gradients.h"
#include "matte/math/blur_estimate.h"
#include "matte/math/deblur.h"
#include "matte/math/probability.h"
#include "matte/matting_energy.h"
#include "matte/patch.h"
#include "matte/tiles.h"

namespace cutout {

namespace {

constexpr std::size_t kRowGrain = 32;  // rows of network pixels

CUTOUT_SIMD void confidence_row(const float* __restrict network, const float* __restrict result,
                                const float* __restrict before, const float* __restrict after,
                                const float* __restrict start, const float* __restrict alpha,
                                const float* __restrict fineness,
                                const std::uint8_t* __restrict uncertain, int n,
                                float* __restrict confidence, float* __restrict kept) {
  for (int i = 0; i < n; ++i) {
    const float share = deblur::kept_share(before[i], after[i]);
    const float sure = deblur::guide_confidence(network[i], result[i], share, fineness[i]);
    confidence[i] = uncertain[i] != 0 ? sure : 0.0F;
    kept[i] = deblur::kept(start[i], alpha[i], share);
  }
}

CUTOUT_SIMD void keep_row(const float* __restrict kept, const std::uint8_t* __restrict uncertain,
                          int n, float* __restrict alpha) {
  for (int i = 0; i < n; ++i) alpha[i] = uncertain[i] != 0 ? kept[i] : alpha[i];
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
    const float suppressed = confidence[i] * deblur::edge_between(least, most);
    confidence[i] = uncertain[i] != 0 ? suppressed : confidence[i];
  }
}

/// Suppresses the confidence of a tile's uncertain network pixels where there is no edge.
void suppress_tile(const Guide& guide, const Tile& tile, DeblurredMatte& matte) {
  std::array<std::array<float, kTile + 2>, 3> rows{};  // by row modulo 3
  const int n = tile.right - tile.left;
  const auto load = [&](int y) -> const float* {
    float* row = rows[static_cast<std::size_t>(y + 3) % 3].data();
    const int inside = std::clamp(y, 0, guide.height - 1);
    copy_padded(matte.alpha.get() + guide.at(0, inside), guide.width, tile.left - 1, n + 2, row);
    return row;
  };
  const float* above = load(tile.top - 1);
  const float* here = load(tile.top);
  for (int y = tile.top; y < tile.bottom; ++y) {
    const float* below = load(y + 1);
    const std::size_t index = guide.at(tile.left, y);
    suppress_row(above, here, below, matte.uncertain.get() + index, n,
                 matte.confidence.get() + index);
    above = here;
    here = below;
  }
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
    const bool is_uncertain = deblur::is_uncertain(least, most);
    const float soft = clamp01(p[i]);
    const float certain = snap(p[i]);
    uncertain[i] = static_cast<std::uint8_t>(is_uncertain);
    alpha[i] = is_uncertain ? soft : certain;
  }
}

/// Start values of a row: alpha is p where uncertain, 0 or 1 elsewhere; confidence is 0.
void begin_row(const Guide& guide, std::span<const float> p, int y, std::vector<float>& scratch,
               DeblurredMatte& matte) {
  const auto width = static_cast<std::size_t>(guide.width);
  const auto row = [&](int j) {
    return p.data() + guide.at(0, std::clamp(j, 0, guide.height - 1));
  };
  scratch.resize(2 * (width + 2));
  float* low = scratch.data();
  float* high = low + width + 2;
  range_across(row(y - 1), row(y), row(y + 1), guide.width, low + 1, high + 1);
  low[0] = low[1];
  high[0] = high[1];
  low[width + 1] = low[width];
  high[width + 1] = high[width];
  const std::size_t index = guide.at(0, y);
  begin_pixels(row(y), low, high, guide.width, matte.uncertain.get() + index,
               matte.alpha.get() + index);
  std::fill_n(matte.confidence.get() + index, width, 0.0F);
}

CUTOUT_SIMD void limit_row(int n, float* alpha) {
  for (int i = 0; i < n; ++i) alpha[i] = clamp01(alpha[i]);
}

/// Roots of the energy's first two terms together.
CUTOUT_SIMD void terms_patch(const float* __restrict output, const float* __restrict confidence,
                             const float* __restrict sampled, const float* __restrict value,
                             const float* __restrict blurred, const Extent& extent, int inset,
                             float* __restrict out) {
  const int right = patch_end(extent, inset);
  for (int j = inset; j < extent.down - inset; ++j) {
    for (int i = inset; i < right; ++i) {
      const int at = j * kPatchStride + i;
      out[at] =
          deblur::root_of_terms(output[at], confidence[at], sampled[at], value[at], blurred[at]);
    }
  }
}

/// Patches of a tile of the confidence.
struct Patches {
  Patch output;
  Patch sample_confidence;
  Patch sampled_alpha;
  Patch before;
  Patch after;
  Patch start;
  Patch alpha;
  Patch lines;
  Patch blurred;
  Patch changes;
  Patch network;
  Patch result;
};

void confidence_tile(const Guide& guide, const EnergyTerms& terms, const MattingEnergy& energy,
                     const BlurWeights& weights, std::size_t index, Patches& at,
                     DeblurredMatte& matte, float* kept) {
  constexpr int kInset = kHalo - kModelRadius;
  const Tile& tile = energy.tiles()[index];
  const Extent extent = extent_of(tile);
  load_patch(guide, terms.output, tile, 0, at.output);
  load_patch(guide, terms.sample_confidence, tile, 0, at.sample_confidence);
  load_patch(guide, terms.sampled_alpha, tile, 0, at.sampled_alpha);
  const auto mean_terms = [&](const Patch& value, Patch& out) {
    terms_patch(at.output.data(), at.sample_confidence.data(), at.sampled_alpha.data(),
                value.data(), at.blurred.data(), extent, kInset, at.changes.data());
    mean_squares(at.changes, extent, kHalo, at.lines, out);
  };
  load_patch(guide, terms.start, tile, 0, at.start);
  load_patch(guide, matte.alpha.get(), tile, 0, at.alpha);
  blur_patch(at.start, extent, kInset, weights, at.lines, at.blurred);
  subtract_patch(at.start, at.blurred, extent, kInset, at.changes);
  mean_squares(at.changes, extent, kHalo, at.lines, at.network);
  mean_terms(at.start, at.before);
  blur_patch(at.alpha, extent, kInset, weights, at.lines, at.blurred);
  subtract_patch(at.start, at.blurred, extent, kInset, at.changes);
  mean_squares(at.changes, extent, kHalo, at.lines, at.result);
  mean_terms(at.alpha, at.after);
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::size_t to = guide.at(tile.left, y);
    const std::ptrdiff_t i = (y - tile.top + kHalo) * kPatchStride + kHalo;
    confidence_row(at.network.data() + i, at.result.data() + i, at.before.data() + i,
                   at.after.data() + i, at.start.data() + i, at.alpha.data() + i,
                   energy.fineness(index, y), matte.uncertain.get() + to, tile.right - tile.left,
                   matte.confidence.get() + to, kept + to);
  }
}

}  // namespace

DeblurredMatte deblur_matte(const Guide& guide, std::span<const float> p,
                            const ColourSampling& samples, ThreadPool& pool) {
  DeblurredMatte matte{make_large_array<float>(guide.size()), make_large_array<float>(guide.size()),
                       make_large_array<std::uint8_t>(guide.size())};
  const auto start = make_large_array<float>(guide.size());
  const auto direction = make_large_array<float>(guide.size());
  const std::span<const float> alpha{samples.alpha.get(), guide.size()};
  pool.parallel_for(static_cast<std::size_t>(guide.height), kRowGrain,
                    [&](std::size_t begin, std::size_t end) {
                      std::vector<float> scratch;
                      for (std::size_t y = begin; y < end; ++y) {
                        begin_row(guide, alpha, static_cast<int>(y), scratch, matte);
                        const std::size_t index = guide.at(0, static_cast<int>(y));
                        std::copy_n(matte.alpha.get() + index, guide.width, start.get() + index);
                        std::fill_n(direction.get() + index, guide.width, 0.0F);
                      }
                    });
  std::vector<Tile> tiles = tiles_near(matte.uncertain.get(), guide.width, guide.height, 0);
  if (tiles.empty()) return matte;
  for (Tile& tile : tiles) tile = marked_part(tile, matte.uncertain.get(), guide.width);
  const BlurWeights weights = blur_weights(estimate_blur(alpha, guide.width, guide.height, pool));
  const EnergyTerms terms{p.data(), start.get(), samples.sample_confidence.get(),
                          samples.sampled_alpha.get(), matte.uncertain.get()};
  const MattingEnergy energy(guide, terms, weights, std::move(tiles), pool);
  minimise(energy, guide, pool, matte.alpha.get(), direction.get());
  const auto each_tile = [&](const auto& run) {
    pool.parallel_for(energy.tiles().size(), 1, [&](std::size_t begin, std::size_t end) {
      const auto patches = std::make_unique_for_overwrite<Patches>();
      for (std::size_t i = begin; i < end; ++i) run(i, *patches);
    });
  };
  each_tile([&](std::size_t i, Patches&) {
    const Tile& tile = energy.tiles()[i];
    for (int y = tile.top; y < tile.bottom; ++y) {
      limit_row(tile.right - tile.left, matte.alpha.get() + guide.at(tile.left, y));
    }
  });
  float* kept = direction.get();
  each_tile([&](std::size_t i, Patches& patches) {
    confidence_tile(guide, terms, energy, weights, i, patches, matte, kept);
  });
  each_tile([&](std::size_t i, Patches&) {
    const Tile& tile = energy.tiles()[i];
    for (int y = tile.top; y < tile.bottom; ++y) {
      const std::size_t at = guide.at(tile.left, y);
      keep_row(kept + at, matte.uncertain.get() + at, tile.right - tile.left,
               matte.alpha.get() + at);
    }
  });
  each_tile([&](std::size_t i, Patches&) { suppress_tile(guide, energy.tiles()[i], matte); });
  return matte;
}

const std::vector<float>& blurs_by_slope() {
  static const std::vector<float> blurs = [] {
    std::vector<float> all;
    for (int slope = -1; slope < kSlopes; ++slope) {
      const BlurWeights weights = blur_weights(blur_of_slope(slope));
      all.insert(all.end(), weights.begin(), weights.end());
    }
    return all;
  }();
  return blurs;
}

}  // namespace cutout
