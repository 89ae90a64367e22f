#include "image/network_input.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/simd.h"
#include "image/filter.h"
#include "image/math/network_input.h"
#include "image/taps.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 16;  // rows of the output

/// Premultiplied RGBA -> over gray -> normalised, into the three planes.
CUTOUT_SIMD void store_planes(const float* __restrict rgba, int pixels, const NetworkInput& spec,
                              float* __restrict red, float* __restrict green,
                              float* __restrict blue) {
  const float scale_r = 1.0F / spec.std[0];
  const float scale_g = 1.0F / spec.std[1];
  const float scale_b = 1.0F / spec.std[2];
  const float mean_r = spec.mean[0];
  const float mean_g = spec.mean[1];
  const float mean_b = spec.mean[2];
  for (int x = 0; x < pixels; ++x) {
    const float gray = gray_behind(rgba[x * 4 + 3]);
    red[x] = normalised(rgba[x * 4], gray, mean_r, scale_r);
    green[x] = normalised(rgba[x * 4 + 1], gray, mean_g, scale_g);
    blue[x] = normalised(rgba[x * 4 + 2], gray, mean_b, scale_b);
  }
}

}  // namespace

void fill_network_input(ConstImageView rgba, const NetworkInput& spec, float* out,
                        ThreadPool& pool) {
  const Taps rows = area_taps(rgba.height, spec.height);
  const Taps columns = area_taps(rgba.width, spec.width);
  const auto width = static_cast<std::size_t>(spec.width);
  const std::size_t plane = width * static_cast<std::size_t>(spec.height);
  const auto body = [&](std::size_t begin, std::size_t end) {
    std::vector<float> filtered(filtered_row_size(rgba.width, columns), 0.0F);
    std::vector<float> pixels(width * 4);
    for (std::size_t y = begin; y < end; ++y) {
      filter_rows(rgba, rows, static_cast<int>(y), filtered.data());
      filter_columns(filtered.data(), columns, pixels.data());
      float* red = out + y * width;
      store_planes(pixels.data(), spec.width, spec, red, red + plane, red + 2 * plane);
    }
  };
  pool.parallel_for(static_cast<std::size_t>(spec.height), kGrain, body);
}

void fill_network_input_scalar(ConstImageView rgba, const NetworkInput& spec, float* out) {
  const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(spec.width) * spec.height;
  for (int oy = 0; oy < spec.height; ++oy) {
    for (int ox = 0; ox < spec.width; ++ox) {
      double sum[3] = {};
      const int top = static_cast<int>(static_cast<double>(oy) * rgba.height / spec.height) - 1;
      const int bottom = static_cast<int>((oy + 1.0) * rgba.height / spec.height) + 2;
      const int left = static_cast<int>(static_cast<double>(ox) * rgba.width / spec.width) - 1;
      const int right = static_cast<int>((ox + 1.0) * rgba.width / spec.width) + 2;
      for (int y = std::max(top, 0); y < std::min(bottom, rgba.height); ++y) {
        const double wy = area_weight(oy, y, rgba.height, spec.height);
        for (int x = std::max(left, 0); x < std::min(right, rgba.width); ++x) {
          const double weight = wy * area_weight(ox, x, rgba.width, spec.width);
          const std::uint8_t* pixel = rgba.row(y) + static_cast<std::ptrdiff_t>(x) * 4;
          const double alpha = pixel[3] / 255.0;
          for (int c = 0; c < 3; ++c) {
            sum[c] += weight * (pixel[c] * alpha + double{kGray} * (1 - alpha));
          }
        }
      }
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(oy) * spec.width + ox;
      for (std::size_t c = 0; c < 3; ++c) {
        out[static_cast<std::ptrdiff_t>(c) * plane + at] = static_cast<float>(
            (sum[c] - static_cast<double>(spec.mean[c])) / static_cast<double>(spec.std[c]));
      }
    }
  }
}

}  // namespace cutout
