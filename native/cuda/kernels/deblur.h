#pragma once

#include "cuda/kernels/conjugate_gradients.h"
#include "cuda/kernels/matting_energy.h"
#include "cuda/kernels/tiles.h"
#include "matte/math/full_size.h"

namespace cutout::cuda {

/// Start values of every network pixel.
struct BeginMatte {
  DeblurPlanes planes;
  const float* p;
  float* alpha;
  float* confidence;

  CUTOUT_HD void operator()(int x, int y) const {
    const Extremes around(planes, x, y, [&](std::ptrdiff_t at) { return snap(p[at]); });
    const bool is_uncertain = deblur::is_uncertain(around.least, around.most);
    const std::ptrdiff_t at = planes.at(x, y);
    const float start = is_uncertain ? clamp01(p[at]) : snap(p[at]);
    planes.uncertain[at] = is_uncertain ? 1 : 0;
    planes.start[at] = start;
    planes.direction[at] = 0.0F;
    planes.fineness[at] = 0.0F;
    alpha[at] = start;
    confidence[at] = 0.0F;
  }
};

struct ClearSlopes {
  std::uint32_t* slopes;

  CUTOUT_HD void operator()(int x, int) const { slopes[x] = 0; }
};

/// Tiles, and the number of the output's slopes in each bin, which is 0 before.
struct FindTiles : OnTiles {
  static constexpr int kPhases = 3;
  struct Shared {
    Tile tile;
    std::uint32_t slopes[kSlopes];
  };
  static_assert(kSlopes <= kWidth * kHeight);

  const float* p;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    const TileThread thread(at, planes);
    if constexpr (kPhase == 0) {
      if (thread.number < kSlopes) shared.slopes[thread.number] = 0;
      if (thread.number == 0) shared.tile = {INT_MAX, INT_MAX, 0, 0, 0};
    } else if constexpr (kPhase == 1) {
      share_out<kTile + 2 * kModelRadius, kTile + 2 * kModelRadius>(thread, [&](int j, int i) {
        const int x = thread.left + i - kModelRadius;
        const int y = thread.top + j - kModelRadius;
        if (planes.inside(x, y) && planes.uncertain[planes.at(x, y)] != 0) {
          atomic_or(&shared.tile.near, 1);
        }
      });
      if (planes.inside(thread.x, thread.y)) see(thread.x, thread.y, shared);
    } else {
      const std::uint32_t* const own = shared.slopes;
      if (thread.number < kSlopes && own[thread.number] != 0) {
        atomic_add(planes.slopes + thread.number, own[thread.number]);
      }
      if (thread.number != 0) return;
      planes.tiles[thread.index] = shared.tile;
      planes.sums[thread.index] = 0;
    }
  }

 private:
  CUTOUT_HD void see(int x, int y, Shared& shared) const {
    const std::ptrdiff_t at = planes.at(x, y);
    if (planes.uncertain[at] != 0) {
      atomic_min(&shared.tile.left, x);
      atomic_min(&shared.tile.top, y);
      atomic_max(&shared.tile.right, x + 1);
      atomic_max(&shared.tile.bottom, y + 1);
    }
    if (x == 0 || y == 0 || x == planes.width - 1 || y == planes.height - 1) return;
    const int slope = slope_at(p + at, planes.width);
    if (slope >= 0) atomic_add(shared.slopes + slope, 1);
  }
};

/// Chooses the blur, and says where the steps end. One block.
struct BeginSearch {
  static constexpr int kWidth = 256;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 2;
  struct Shared {
    std::uint32_t slopes[kSlopes];
    std::uint32_t areas[kWidth];
  };

  DeblurPlanes planes;
  const float* blurs;  // weights by slope, from -1 on

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    if constexpr (kPhase == 0) {
      for (int i = at.thread_x; i < kSlopes; i += kWidth) shared.slopes[i] = planes.slopes[i];
      std::uint32_t area = 0;
      for (int i = at.thread_x; i < planes.tiles_across * planes.tiles_down; i += kWidth) {
        area += planes.tiles[i].area();
      }
      shared.areas[at.thread_x] = area;
    } else if (at.thread_x == 0) {
      std::uint32_t pixels = 0;
      for (int i = 0; i < kWidth; ++i) pixels += shared.areas[i];
      const float* const weights = blurs + (used_slope(shared.slopes) + 1) * (kBlurRadius + 1);
      Search& search = *planes.search;
      for (int i = 0; i <= kBlurRadius; ++i) search.blur[i] = weights[i];
      search.blur_diagonal = energy::blur_diagonal(weights);
      search.step = 0.0F;
      search.beta = 0.0F;
      search.tolerance = deblur::tolerance(pixels);
      search.running = 1;
      search.rz = 0;
    }
  }
};

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

/// Deblurring: alpha of matte/deblur.h, its confidence, and alpha_for_colours of
/// matte/refine.h. All steps are queued; none is waited for.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | p         | output of the network, of the guide's size, as `samples`                             |
/// | blurs     | for each result of used_slope() from -1 on the weights of that blur                  |
/// | scratch   | deblur_scratch() bytes: about 77 for each network pixel                              |
/// | sums      | of lanes, tiles and rows of tiles in the order of the CPU                            |
/// | agreement | bit-equal to deblur_matte and alpha_for_colours                                      |
template <typename Executor>
void deblur_matte(Executor& on, GuidePlanes guide, const float* p, SampledPlanes samples,
                  const float* blurs, void* scratch, float* alpha, float* confidence,
                  float* for_colours) {
  const DeblurPlanes planes = deblur_planes(guide.width, guide.height, scratch);
  const auto each_pixel = [&](const auto& body) {
    over_plane(on, guide.width, guide.height, body);
  };
  const auto each_tile = [&](const auto& kernel) {
    on.run(planes.tiles_across, planes.tiles_down, kernel);
  };
  each_pixel(BeginMatte{planes, samples.alpha, alpha, confidence});
  over_plane(on, kSlopes, 1, ClearSlopes{planes.slopes});
  each_tile(FindTiles{planes, samples.alpha});
  on.run(1, 1, BeginSearch{planes, blurs});
  each_tile(FindFineness{planes});
  each_tile(CountWindows{planes});
  each_tile(FactorWindows{planes, guide});
  each_tile(FitWindows<true>{planes, guide});
  each_tile(SumTerms<true>{planes, guide, p, samples});
  each_tile(Advance<true>{planes, samples.confidence, alpha});
  on.run(1, 1, Conclude<Total::kFirstRz>{planes});
  each_pixel(NextDirection{planes});
  for (int step = 0; step < deblur::kMaxIterations; ++step) {
    each_tile(FitWindows<false>{planes, guide});
    each_tile(SumTerms<false>{planes, guide, p, samples});
    on.run(1, 1, Conclude<Total::kCurvature>{planes});
    each_tile(Advance<false>{planes, samples.confidence, alpha});
    on.run(1, 1, Conclude<Total::kRz>{planes});
    each_pixel(NextDirection{planes});
  }
  const auto mean = [&](int k) { return planes.fits + k * planes.size(); };
  each_tile(ExplainOutput{planes, p, samples, planes.start, mean(0), mean(1)});
  each_tile(ExplainOutput{planes, p, samples, alpha, mean(2), mean(3)});
  each_pixel(KeepExplained{planes, alpha, confidence});
  each_pixel(SuppressFlat{planes, samples, alpha, confidence, for_colours});
}

}  // namespace cutout::cuda
