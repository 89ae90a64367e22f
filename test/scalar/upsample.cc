#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "matte/blur_estimate.h"
#include "matte/cubic_taps.h"
#include "matte/deblur.h"
#include "matte/math/blur_estimate.h"
#include "matte/math/full_size.h"
#include "scalar/matte.h"

namespace cutout::test {

namespace {

using enum window::Product;

}  // namespace

float estimate_blur_scalar(std::span<const float> p, int width, int height) {
  std::vector<int> slopes;
  for (int y = 1; y < height - 1; ++y) {
    for (int x = 1; x < width - 1; ++x) {
      const int slope = slope_at(p.data() + static_cast<std::ptrdiff_t>(y) * width + x, width);
      if (slope >= 0) slopes.push_back(slope);
    }
  }
  if (slopes.empty()) return kMinBlur;
  std::sort(slopes.begin(), slopes.end(), std::greater<>());
  return blur_of_slope(slopes[slope_rank(static_cast<std::uint32_t>(slopes.size()))]);
}

std::array<float, kPlaneChannels> local_model_scalar(const Guide& guide, const float* alpha, int x,
                                                     int y) {
  std::array<std::array<float, kProducts>, kModelWindow> lines{};
  for (int j = 0; j < kModelWindow; ++j) {
    std::array<std::array<float, kProducts>, kModelWindow> line{};
    for (int i = 0; i < kModelWindow; ++i) {
      const std::size_t index = guide.at(std::clamp(x - kModelRadius + i, 0, guide.width - 1),
                                         std::clamp(y - kModelRadius + j, 0, guide.height - 1));
      float* products = line[static_cast<std::size_t>(i)].data();
      std::array<float, 3> colour{};
      for (std::size_t c = 0; c < colour.size(); ++c) {
        colour[c] = guide.planes[c][index] * guide.scale[c] + (guide.offset[c] - kModelMiddle);
      }
      const float p = alpha[index] - kModelMiddle;
      plane_products(colour[0], colour[1], colour[2], p, products, 1);
    }
    for (std::size_t k = 0; k < kProducts; ++k) {
      lines[static_cast<std::size_t>(j)][k] =
          sum7(line[0][k], line[1][k], line[2][k], line[3][k], line[4][k], line[5][k], line[6][k]);
    }
  }
  std::array<float, kProducts> sums{};
  for (std::size_t k = 0; k < kProducts; ++k) {
    sums[k] = sum7(lines[0][k], lines[1][k], lines[2][k], lines[3][k], lines[4][k], lines[5][k],
                   lines[6][k]);
  }
  std::array<float, kPlaneChannels> model{};
  solve_plane(sums.data(), 1, model.data(), 1);
  return model;
}

MatteSummary refine_scalar(ImageView rgba, const Guide& guide, std::span<const float> p,
                           const ColourSampling& samples, const Box& roi, HiddenColour hidden) {
  ThreadPool alone(0);
  const DeblurredMatte matte = deblur_matte(guide, p, samples, alone);
  std::vector<float> sampled_alpha(matte.alpha.get(), matte.alpha.get() + guide.size());
  for (std::size_t index = 0; index < guide.size(); ++index) {
    sampled_alpha[index] = toward_samples(sampled_alpha[index], samples.sample_confidence[index],
                                          samples.sampled_alpha[index]);
  }
  const LayerColours colours = estimate_colours_scalar(guide, sampled_alpha.data());
  const GuideAxis rows(guide.height, rgba.height);
  const GuideAxis columns(guide.width, rgba.width);
  const std::uint32_t hidden_mask = hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU;
  std::vector<std::array<float, kChannels>> values(guide.size());
  for (int y = 0; y < guide.height; ++y) {
    for (int x = 0; x < guide.width; ++x) {
      const std::size_t index = guide.at(x, y);
      std::array<float, kChannels>& at = values[index];
      const auto model = local_model_scalar(guide, matte.alpha.get(), x, y);
      std::copy_n(model.begin(), 4, at.begin());
      for (std::size_t c = 0; c < 3; ++c) {
        at[kFore + c] = colours.fore[c][index];
        at[kBack + c] = colours.back[c][index];
      }
      const float colour[3] = {guide.colour(0, index), guide.colour(1, index),
                               guide.colour(2, index)};
      at[kOffset] = offset_through(colour, at.data(), matte.alpha[index]);
      at[kConfidence] = matte.confidence[index];
    }
  }
  Summary summary;
  for (int y = 0; y < rgba.height; ++y) {
    for (int x = 0; x < rgba.width; ++x) {
      std::uint8_t* bytes = rgba.row(y) + static_cast<std::ptrdiff_t>(x) * 4;
      if (x < roi.left || x >= roi.left + roi.width || y < roi.top || y >= roi.top + roi.height) {
        clear_alpha(bytes, 1, hidden);
        summary.add({0, 0, 0}, bytes, x, 1, y);
        continue;
      }
      const auto row = static_cast<std::size_t>(y);
      const auto column = static_cast<std::size_t>(x);
      const auto at = [&](int dx, int dy) {
        return guide.at(std::clamp(columns.base[column] + dx, 0, guide.width - 1),
                        std::clamp(rows.base[row] + dy, 0, guide.height - 1));
      };
      const auto spline = [](const GuideAxis& axis, std::size_t i, const std::array<float, 4>& v) {
        return between(v[0], v[1], v[2], v[3], axis.spline[0][i], axis.spline[1][i],
                       axis.spline[2][i], axis.spline[3][i]);
      };
      std::array<float, 4> lines{};
      for (int k = 0; k < 4; ++k) {
        std::array<float, 4> taps{};
        for (int l = 0; l < 4; ++l) {
          taps[static_cast<std::size_t>(l)] = matte.alpha[at(l - 1, k - 1)];
        }
        lines[static_cast<std::size_t>(k)] = spline(columns, column, taps);
      }
      const float q = spline(rows, row, lines);
      const auto value = [&](int k) {
        const auto channel = static_cast<std::size_t>(k);
        const auto row_at = [&](int dy) {
          return blend(values[at(0, dy)][channel], values[at(1, dy)][channel], columns.t[column]);
        };
        return blend(row_at(0), row_at(1), rows.t[row]);
      };
      std::uint32_t pixel = 0;
      std::memcpy(&pixel, bytes, 4);
      pixel = refined_pixel(pixel, q, value, hidden_mask);
      std::memcpy(bytes, &pixel, 4);
      const std::uint32_t alpha = pixel >> 24;
      summary.add({alpha, alpha, alpha >> 7}, bytes, x, 1, y);
    }
  }
  return summary.result();
}

}  // namespace cutout::test
