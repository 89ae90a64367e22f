#pragma once

#include "cuda/kernels/tiles.h"
#include "matte/math/full_size.h"

namespace cutout::cuda {

/// Mean squares of start - blur(value), to `changes`, and means of the energy's first two terms at
/// the value, to `terms`, of active tiles. The value is limited to 0..1.
struct ExplainOutput : OnTiles {
  static constexpr int kBlurred = kTile + 2 * kModelRadius;
  static constexpr int kValue = kBlurred + 2 * kBlurRadius;
  struct Shared {
    float value[kValue][kValue];
    float lines[kValue][kBlurred];
    float changes[kBlurred][kBlurred];
    float terms[kBlurred][kBlurred];
    float change_lines[kBlurred][kTile];
    float term_lines[kBlurred][kTile];
  };
  static constexpr int kPhases = 5;

  const float* p;
  SampledPlanes samples;
  const float* value;
  float* changes;
  float* terms;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& s) const {
    constexpr int kInValue = kBlurRadius + kModelRadius;
    const TileThread thread(at, planes);
    const Tile& tile = planes.tiles[thread.index];
    if (!tile.active()) return;
    const float* const blur = planes.search->blur;
    if constexpr (kPhase == 0) {
      share_out<kValue, kValue>(thread, [&](int j, int i) {
        s.value[j][i] =
            clamp01(value[planes.clamped(thread.left + i - kInValue, thread.top + j - kInValue)]);
      });
    } else if constexpr (kPhase == 1) {
      share_out<kValue, kBlurred>(thread, [&](int j, int i) {
        s.lines[j][i] = blur9(&s.value[j][i + kBlurRadius], 1, blur);
      });
    } else if constexpr (kPhase == 2) {
      share_out<kBlurred, kBlurred>(thread, [&](int j, int i) {
        const std::ptrdiff_t index =
            planes.clamped(thread.left + i - kModelRadius, thread.top + j - kModelRadius);
        const float blurred = blur9(&s.lines[j + kBlurRadius][i], kBlurred, blur);
        s.changes[j][i] = planes.start[index] - blurred;
        s.terms[j][i] =
            deblur::root_of_terms(p[index], samples.confidence[index], samples.sampled[index],
                                  s.value[j + kBlurRadius][i + kBlurRadius], blurred);
      });
    } else if constexpr (kPhase == 3) {
      share_out<kBlurred, kTile>(thread, [&](int j, int i) {
        s.change_lines[j][i] = sum_squares(&s.changes[j][i + kModelRadius]);
        s.term_lines[j][i] = sum_squares(&s.terms[j][i + kModelRadius]);
      });
    } else if (tile.holds(thread.x, thread.y)) {
      const int j = at.thread_y + kModelRadius;
      const std::ptrdiff_t index = planes.at(thread.x, thread.y);
      changes[index] = sum_window(&s.change_lines[j][at.thread_x], kTile) * kWindowMean;
      terms[index] = sum_window(&s.term_lines[j][at.thread_x], kTile) * kWindowMean;
    }
  }
};

/// Confidence of uncertain network pixels; their alpha returns to the start as far as colours do
/// not explain the edge. The planes of fits hold what ExplainOutput gave for start and alpha.
struct KeepExplained {
  DeblurPlanes planes;
  float* alpha;
  float* confidence;

  CUTOUT_HD void operator()(int x, int y) const {
    if (!planes.tile_of(x, y).holds(x, y)) return;
    const std::ptrdiff_t index = planes.at(x, y);
    const float found = clamp01(alpha[index]);
    alpha[index] = found;
    if (planes.uncertain[index] == 0) return;
    const auto mean = [&](int k) { return planes.fits[k * planes.size() + index]; };
    const float share = deblur::kept_share(mean(1), mean(3));
    confidence[index] = deblur::guide_confidence(mean(0), mean(2), share, planes.fineness[index]);
    alpha[index] = deblur::kept(planes.start[index], found, share);
  }
};

/// Lowers the confidence of uncertain network pixels where there is no edge; and the alpha that
/// the colours are estimated for.
struct SuppressFlat {
  DeblurPlanes planes;
  SampledPlanes samples;
  const float* alpha;
  float* confidence;
  float* for_colours;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t index = planes.at(x, y);
    for_colours[index] =
        toward_samples(alpha[index], samples.confidence[index], samples.sampled[index]);
    if (planes.uncertain[index] == 0) return;
    const Extremes around(planes, x, y, [&](std::ptrdiff_t at) { return alpha[at]; });
    confidence[index] *= deblur::edge_between(around.least, around.most);
  }
};

}  // namespace cutout::cuda
