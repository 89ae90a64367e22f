#include "image/network_input.h"

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

}  // namespace cutout
