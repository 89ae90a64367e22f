#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "matte/math/colour_sampling.h"
#include "matte/math/foreground_colours.h"
#include "matte/math/probability.h"
#include "matte/pyramid.h"
#include "scalar/matte.h"

namespace cutout::test {

namespace {

/// Plane `plane` of the coarser level at pixel (x, y) of the finer one, bilinear.
float from_coarse(const Level& coarse, int plane, int x, int y) {
  const CoarseTaps h = coarse_taps(x, coarse.width);
  const CoarseTaps v = coarse_taps(y, coarse.height);
  const float* near = coarse.row(plane, v.near);
  const float* far = coarse.row(plane, v.far);
  return interpolate(interpolate(near[h.near], near[h.far]), interpolate(far[h.near], far[h.far]));
}

/// Pull phase: a level from the next finer one, whose sums `fine` returns.
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

/// spread_colours of matte/pyramid.h with squared lengths at every pixel, one by one.
Level spread(const Guide& guide, const float* alpha, float unknown) {
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

LayerColours empty_colours(const Guide& guide) {
  LayerColours colours;
  for (std::size_t c = 0; c < 3; ++c) {
    colours.fore[c] = make_large_array<float>(guide.size());
    colours.back[c] = make_large_array<float>(guide.size());
  }
  return colours;
}

}  // namespace

LayerColours estimate_colours_scalar(const Guide& guide, const float* alpha) {
  const auto weight = [&](int layer, std::size_t index) {
    return power8(layer == 0 ? alpha[index] : 1.0F - alpha[index]);
  };
  const Level coarse = spread(guide, alpha, 0.0F);

  // The Jacobi steps on the guide, its border repeated as far as they depend on it.
  constexpr int kBorder = kJacobiSteps + 1;
  const int width = guide.width + 2 * kBorder;
  const int height = guide.height + 2 * kBorder;
  const auto index_of = [&](int x, int y) {
    return guide.at(std::clamp(x - kBorder, 0, guide.width - 1),
                    std::clamp(y - kBorder, 0, guide.height - 1));
  };
  const auto bordered = [&](int x, int y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  };
  std::array<std::vector<float>, 6> now;
  for (int k = 0; k < 6; ++k) {
    auto& plane = now[static_cast<std::size_t>(k)];
    plane.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const std::size_t index = index_of(x, y);
        plane[bordered(x, y)] =
            first_guess(guide.colour(static_cast<std::size_t>(k % 3), index), weight(k / 3, index),
                        from_coarse(coarse, k / 3 * kLayerSums + k % 3,
                                    std::clamp(x - kBorder, 0, guide.width - 1),
                                    std::clamp(y - kBorder, 0, guide.height - 1)));
      }
    }
  }
  for (int step = 0; step < kJacobiSteps; ++step) {
    const std::array<std::vector<float>, 6> before = now;
    for (int y = step + 1; y < height - step - 1; ++y) {
      for (int x = step + 1; x < width - step - 1; ++x) {
        const float a = alpha[index_of(x, y)];
        const Neighbours w{weight_between(a, alpha[index_of(x - 1, y)]),
                           weight_between(a, alpha[index_of(x + 1, y)]),
                           weight_between(a, alpha[index_of(x, y - 1)]),
                           weight_between(a, alpha[index_of(x, y + 1)])};
        const System m = system_of(a, w);
        for (std::size_t c = 0; c < 3; ++c) {
          const auto around = [&](const std::vector<float>& plane) {
            return Neighbours{plane[bordered(x - 1, y)], plane[bordered(x + 1, y)],
                              plane[bordered(x, y - 1)], plane[bordered(x, y + 1)]};
          };
          const float own = guide.colour(c, index_of(x, y));
          const float b0 = right_side(a * own, w, around(before[c]));
          const float b1 = right_side((1.0F - a) * own, w, around(before[c + 3]));
          now[c][bordered(x, y)] = solve_fore(m, b0, b1);
          now[c + 3][bordered(x, y)] = solve_back(m, b0, b1);
        }
      }
    }
  }
  LayerColours colours = empty_colours(guide);
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        colours.fore[c][guide.at(x, y)] = now[c][bordered(x + kBorder, y + kBorder)];
        colours.back[c][guide.at(x, y)] = now[c + 3][bordered(x + kBorder, y + kBorder)];
      }
    }
  }
  return colours;
}

ColourSampling sample_colours_scalar(const Guide& guide, std::span<const float> p) {
  const auto zeros = [&guide] {
    auto values = make_large_array<float>(guide.size());
    std::fill_n(values.get(), guide.size(), 0.0F);
    return values;
  };
  ColourSampling result{zeros(), zeros(), zeros()};
  float* alpha = result.alpha.get();
  for (std::size_t i = 0; i < guide.size(); ++i) alpha[i] = clamp01(p[i]);
  const auto all = [&](int x, int y, int radius, auto holds) {
    for (int j = std::max(y - radius, 0); j <= std::min(y + radius, guide.height - 1); ++j) {
      for (int i = std::max(x - radius, 0); i <= std::min(x + radius, guide.width - 1); ++i) {
        if (!holds(p[guide.at(i, j)])) return false;
      }
    }
    return true;
  };
  std::vector<float> samples(guide.size());
  bool fore = false;
  bool back = false;
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const bool solid = all(x, y, kForeRadius, [](float v) { return v > kCertainForeground; });
      const bool inside = all(x, y, kWideRadius, is_inside);
      const bool outside =
          all(x, y, kBackRadius, [](float v) { return !(v >= kCertainBackground); });
      samples[guide.at(x, y)] = solid || inside ? 1.0F : (outside ? 0.0F : kUnknown);
      fore = fore || solid;
      back = back || outside;
    }
  }
  if (!fore || !back) return result;
  const Level colours = spread(guide, samples.data(), kUnknown);
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t index = guide.at(x, y);
      if (samples[index] != kUnknown) continue;
      const float colour[3] = {guide.colour(0, index), guide.colour(1, index),
                               guide.colour(2, index)};
      const auto layer = [&](int plane) { return from_coarse(colours, plane_of(plane), x, y); };
      const float foreground[4] = {layer(0), layer(1), layer(2), layer(3)};
      const float background[4] = {layer(4), layer(5), layer(6), layer(7)};
      const bool faint = all(x, y, kWideRadius, is_faint);
      const Sample sample = limited_where_faint(
          sample_of(colour, foreground, background, alpha[index]), alpha[index], faint);
      alpha[index] = moved_towards(alpha[index], sample);
      result.sample_confidence[index] = sample.confidence;
      result.sampled_alpha[index] = sample.alpha;
    }
  }
  return result;
}

}  // namespace cutout::test
