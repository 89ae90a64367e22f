#pragma once

#include "cuda/kernels/local_model.h"
#include "cuda/kernels/tiles.h"

namespace cutout::cuda {

// matte/matting_energy.h on tiles.

/// f of the network pixels of tiles that are near uncertain ones.
struct FindFineness : OnTiles {
  static constexpr int kTwice = kTile + 2 * kModelRadius;  // sides of what the phases compute
  static constexpr int kOnce = kTwice + 2 * kBlurRadius;
  static constexpr int kStart = kOnce + 2 * kBlurRadius;
  struct Shared {
    float start[kStart][kStart];
    float lines[kStart][kOnce];
    float once[kOnce][kOnce];
    float twice[kTwice][kTwice];
  };
  static constexpr int kPhases = 7;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& s) const {
    constexpr int kInTwice = kModelRadius;
    constexpr int kInOnce = kModelRadius + kBlurRadius;
    constexpr int kInStart = kModelRadius + 2 * kBlurRadius;
    const TileThread thread(at, planes);
    if (planes.tiles[thread.index].near == 0) return;
    const float* const blur = planes.search->blur;
    if constexpr (kPhase == 0) {
      share_out<kStart, kStart>(thread, [&](int j, int i) {
        s.start[j][i] =
            planes.start[planes.clamped(thread.left + i - kInStart, thread.top + j - kInStart)];
      });
    } else if constexpr (kPhase == 1) {
      share_out<kStart, kOnce>(thread, [&](int j, int i) {
        s.lines[j][i] = blur9(&s.start[j][i + kBlurRadius], 1, blur);
      });
    } else if constexpr (kPhase == 2) {
      share_out<kOnce, kOnce>(thread, [&](int j, int i) {
        s.once[j][i] = s.start[j + kBlurRadius][i + kBlurRadius] -
                       blur9(&s.lines[j + kBlurRadius][i], kOnce, blur);
      });
    } else if constexpr (kPhase == 3) {
      share_out<kOnce, kTwice>(thread, [&](int j, int i) {
        s.lines[j][i] = blur9(&s.once[j][i + kBlurRadius], 1, blur);
      });
    } else if constexpr (kPhase == 4) {
      share_out<kTwice, kTwice>(thread, [&](int j, int i) {
        s.twice[j][i] = s.once[j + kBlurRadius][i + kBlurRadius] -
                        blur9(&s.lines[j + kBlurRadius][i], kOnce, blur);
      });
    } else if constexpr (kPhase == 5) {
      share_out<kTwice, kTile>(thread, [&](int j, int i) {
        s.lines[j][i] = sum_squares(&s.once[j + kBlurRadius][i + kInOnce]);
        s.start[j][i] = sum_squares(&s.twice[j][i + kInTwice]);
      });
    } else {
      if (!planes.inside(thread.x, thread.y)) return;
      const int i = at.thread_x;
      const int j = at.thread_y + kModelRadius;
      planes.fineness[planes.at(thread.x, thread.y)] =
          energy::fineness(sum_window(&s.lines[j][i], kOnce) * kWindowMean,
                           sum_window(&s.start[j][i], kStart) * kWindowMean);
    }
  }
};

/// A tile and the network pixels whose windows reach into it.
inline constexpr int kModelTile = kTile + 2 * kModelRadius;

/// Mean f of the windows around the network pixels of active tiles; 0 beyond the image.
struct CountWindows : OnTiles {
  struct Shared {
    float fineness[kModelTile][kModelTile];
    float lines[kModelTile][kTile];
  };
  static constexpr int kPhases = 3;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& s) const {
    const TileThread thread(at, planes);
    const Tile& tile = planes.tiles[thread.index];
    if (!tile.active()) return;
    if constexpr (kPhase == 0) {
      share_out<kModelTile, kModelTile>(thread, [&](int j, int i) {
        const int x = thread.left + i - kModelRadius;
        const int y = thread.top + j - kModelRadius;
        s.fineness[j][i] = planes.inside(x, y) ? planes.fineness[planes.at(x, y)] : 0.0F;
      });
    } else if constexpr (kPhase == 1) {
      share_out<kModelTile, kTile>(thread, [&](int j, int i) {
        s.lines[j][i] = sum_window(&s.fineness[j][i + kModelRadius], 1);
      });
    } else if (tile.holds(thread.x, thread.y)) {
      planes.count[planes.at(thread.x, thread.y)] =
          sum_window(&s.lines[at.thread_y + kModelRadius][at.thread_x], kTile) * kWindowMean;
    }
  }
};

/// Means and factors of the windows around network pixels of tiles that are near uncertain ones.
struct FactorWindows : OnTiles {
  static constexpr int kRound = 3;  // sums that are made at a time
  struct Shared {
    float colours[3][kModelTile][kModelTile];
    float lines[kRound][kModelTile][kTile];
  };
  static constexpr int kPhases = 1 + 2 * DeblurPlanes::kWindowPlanes / kRound;

  GuidePlanes guide;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& s) const {
    const TileThread thread(at, planes);
    if (planes.tiles[thread.index].near == 0) return;
    if constexpr (kPhase == 0) {
      share_out<kModelTile, kModelTile>(thread, [&](int j, int i) {
        const std::ptrdiff_t index =
            planes.clamped(thread.left + i - kModelRadius, thread.top + j - kModelRadius);
        for (int c = 0; c < 3; ++c) s.colours[c][j][i] = centred_colour(guide, c, index);
      });
    } else if constexpr (kPhase % 2 == 1) {
      share_out<kModelTile, kTile>(thread, [&](int j, int i) {
        for (int k = 0; k < kRound; ++k) {
          const int number = kPhase / 2 * kRound + k;
          float seven[kModelWindow];
          for (int l = 0; l < kModelWindow; ++l) seven[l] = product(s, number, j, i + l);
          s.lines[k][j][i] = sum_window(seven + kModelRadius, 1);
        }
      });
    } else if (planes.inside(thread.x, thread.y)) {
      const int first = (kPhase / 2 - 1) * kRound;
      float* const windows = planes.windows + planes.at(thread.x, thread.y);
      for (int k = 0; k < kRound; ++k) {
        windows[(first + k) * planes.size()] =
            sum_window(&s.lines[k][at.thread_y + kModelRadius][at.thread_x], kTile);
      }
      if constexpr (kPhase + 1 == kPhases) finish(windows);
    }
  }

 private:
  /// Of a network pixel: r, g, b, r r, r g, r b, g g, g b, b b.
  CUTOUT_HD static float product(const Shared& s, int number, int j, int i) {
    const float r = s.colours[0][j][i];
    const float g = s.colours[1][j][i];
    const float b = s.colours[2][j][i];
    const float first = number < 6 ? r : (number < 8 ? g : b);
    const float second = number == 3 ? r : (number == 4 || number == 6 ? g : b);
    return number < 3 ? s.colours[number][j][i] : first * second;
  }
  /// Sums -> the window, in place.
  CUTOUT_HD void finish(float* windows) const {
    const std::ptrdiff_t plane = planes.size();
    const energy::Window of = energy::window_of([&](int k) { return windows[k * plane]; });
    const float values[DeblurPlanes::kWindowPlanes] = {of.red,
                                                       of.green,
                                                       of.blue,
                                                       of.covariance.over0,
                                                       of.covariance.over1,
                                                       of.covariance.over2,
                                                       of.covariance.l10,
                                                       of.covariance.l20,
                                                       of.covariance.l21};
    for (int k = 0; k < DeblurPlanes::kWindowPlanes; ++k) windows[k * plane] = values[k];
  }
};

/// What the energy is multiplied with: the start, which repeats its border beyond the image, or a
/// direction, which is 0 there.
template <bool kStart>
struct EnergyValue {
  DeblurPlanes planes;

  /// Whether there is something to do.
  CUTOUT_HD bool wanted() const { return kStart || planes.search->running != 0; }
  CUTOUT_HD float at(int x, int y) const {
    if constexpr (kStart) return planes.start[planes.clamped(x, y)];
    return planes.inside(x, y) ? planes.direction[planes.at(x, y)] : 0.0F;
  }
};

/// The planes that fit the value in the windows around network pixels of tiles that are near
/// uncertain ones, times f.
template <bool kStart>
struct FitWindows : OnTiles {
  static constexpr int kSums = DeblurPlanes::kFitPlanes;
  struct Shared {
    float products[kSums][kModelTile][kModelTile];
    float lines[kSums][kModelTile][kTile];
  };
  static constexpr int kPhases = 3;

  GuidePlanes guide;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& s) const {
    const EnergyValue<kStart> value{planes};
    const TileThread thread(at, planes);
    if (!value.wanted() || planes.tiles[thread.index].near == 0) return;
    if constexpr (kPhase == 0) {
      share_out<kModelTile, kModelTile>(thread, [&](int j, int i) {
        const int x = thread.left + i - kModelRadius;
        const int y = thread.top + j - kModelRadius;
        const float v = value.at(x, y);
        const std::ptrdiff_t index = planes.clamped(x, y);
        for (int c = 0; c < 3; ++c) s.products[c][j][i] = v * centred_colour(guide, c, index);
        s.products[3][j][i] = v;
      });
    } else if constexpr (kPhase == 1) {
      share_out<kModelTile, kTile>(thread, [&](int j, int i) {
        for (int k = 0; k < kSums; ++k) {
          s.lines[k][j][i] = sum_window(&s.products[k][j][i + kModelRadius], 1);
        }
      });
    } else if (planes.inside(thread.x, thread.y)) {
      const auto sum = [&](int k) {
        return sum_window(&s.lines[k][at.thread_y + kModelRadius][at.thread_x], kTile);
      };
      const std::ptrdiff_t index = planes.at(thread.x, thread.y);
      const std::ptrdiff_t plane = planes.size();
      const float* const w = planes.windows + index;
      const energy::Window window{
          w[0],
          w[plane],
          w[2 * plane],
          {w[3 * plane], w[4 * plane], w[5 * plane], w[6 * plane], w[7 * plane], w[8 * plane]}};
      float fit[kSums] = {sum(0), sum(1), sum(2), sum(3)};
      energy::fit_plane(window, planes.fineness[index], fit[0], fit[1], fit[2], fit[3]);
      for (int k = 0; k < kSums; ++k) planes.fits[k * plane + index] = fit[k];
    }
  }
};

/// From the fits, for active tiles: -1/2 of the gradient at the start, to the residual; or 1/2 of
/// the Hessian times the direction, to the product, with its sum of products with the direction.
template <bool kStart>
struct SumTerms : OnTiles {
  static constexpr int kSums = DeblurPlanes::kFitPlanes;
  static constexpr int kBlurred = kTile + 2 * kBlurRadius;
  static constexpr int kValue = kBlurred + 2 * kBlurRadius;
  struct Shared {
    float fits[kSums][kModelTile][kTile];  // sums of seven of a row
    float value[kValue][kValue];
    float lines[kValue][kBlurred];
    float blurred[kBlurred][kBlurred];
    float products[kTile][kTile];  // of the sum
    float lanes[kSumLanes];
  };
  static constexpr int kPhases = kStart ? 5 : 7;

  GuidePlanes guide;
  const float* p;
  SampledPlanes samples;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& s) const {
    const EnergyValue<kStart> value{planes};
    const TileThread thread(at, planes);
    const Tile& tile = planes.tiles[thread.index];
    if (!value.wanted() || !tile.active()) return;
    const float* const blur = planes.search->blur;
    if constexpr (kPhase == 0) {
      share_out<kValue, kValue>(thread, [&](int j, int i) {
        s.value[j][i] =
            value.at(thread.left + i - 2 * kBlurRadius, thread.top + j - 2 * kBlurRadius);
      });
      share_out<kModelTile, kTile>(thread, [&](int j, int i) {
        sum_fits(s, thread.left, thread.top + j - kModelRadius, j, i);
      });
    } else if constexpr (kPhase == 1) {
      share_out<kValue, kBlurred>(thread, [&](int j, int i) {
        s.lines[j][i] = blur9(&s.value[j][i + kBlurRadius], 1, blur);
      });
    } else if constexpr (kPhase == 2) {
      share_out<kBlurred, kBlurred>(thread, [&](int j, int i) {
        const int x = thread.left + i - kBlurRadius;
        const int y = thread.top + j - kBlurRadius;
        const std::ptrdiff_t index = planes.clamped(x, y);
        const float once = blur9(&s.lines[j + kBlurRadius][i], kBlurred, blur);
        s.blurred[j][i] = planes.inside(x, y)
                              ? energy::data_residual(samples.confidence[index], p[index],
                                                      kStart ? 1.0F : 0.0F, once)
                              : 0.0F;
      });
    } else if constexpr (kPhase == 3) {
      share_out<kBlurred, kTile>(thread, [&](int j, int i) {
        s.lines[j][i] = blur9(&s.blurred[j][i + kBlurRadius], 1, blur);
      });
    } else if constexpr (kPhase == 4) {
      if (tile.holds(thread.x, thread.y)) finish(s, at, planes.at(thread.x, thread.y));
    } else {
      sum_tile<kPhase - 5>(thread, tile, s.products, s.lanes, planes.sums + thread.index);
    }
  }

 private:
  /// Beyond the image there is no window.
  CUTOUT_HD void sum_fits(Shared& s, int left, int y, int row, int column) const {
    for (int k = 0; k < kSums; ++k) {
      float seven[kModelWindow];
      for (int l = 0; l < kModelWindow; ++l) {
        const int x = left + column + l - kModelRadius;
        seven[l] = planes.inside(x, y) ? planes.fits[k * planes.size() + planes.at(x, y)] : 0.0F;
      }
      s.fits[k][row][column] = sum_window(seven + kModelRadius, 1);
    }
  }
  CUTOUT_HD void finish(Shared& s, const ThreadIndex& at, std::ptrdiff_t index) const {
    const float twice =
        blur9(&s.lines[at.thread_y + kBlurRadius][at.thread_x], kBlurred, planes.search->blur);
    const float value = s.value[at.thread_y + 2 * kBlurRadius][at.thread_x + 2 * kBlurRadius];
    const auto sum = [&](int k) {
      return sum_window(&s.fits[k][at.thread_y + kModelRadius][at.thread_x], kTile);
    };
    const float smooth =
        energy::laplacian(planes.count[index], value, centred_colour(guide, 0, index),
                          centred_colour(guide, 1, index), centred_colour(guide, 2, index), sum(0),
                          sum(1), sum(2), sum(3));
    const bool uncertain = planes.uncertain[index] != 0;
    const float confidence = samples.confidence[index];
    if constexpr (kStart) {
      const float descent =
          energy::descent(smooth, twice, value, confidence, samples.sampled[index]);
      planes.residual[index] = uncertain ? descent : 0.0F;
    } else {
      const float hessian =
          energy::hessian(smooth, twice, value, confidence, planes.fineness[index]);
      const float product = uncertain ? hessian : 0.0F;
      planes.product[index] = product;
      s.products[at.thread_y][at.thread_x] = value * product;
    }
  }
};

}  // namespace cutout::cuda
