#include "image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include "core/simd.h"
#include "image/filter.h"

namespace cutout {

namespace {

constexpr std::size_t kBand = 64;  // rows of the result computed before any of them is written back
constexpr std::size_t kGrain = 8;

/// Row y of a Lanczos3 reduction starts to read 3 rows of the result before itself, the band that
/// waits ends one band before the one being computed: reading and writing never meet.
static_assert(kBand > 4);

double lanczos3_definition(double x) {
  if (x == 0) return 1;
  if (std::abs(x) >= 3) return 0;
  const double a = std::numbers::pi * x;
  return (std::sin(a) / a) * (std::sin(a / 3) / (a / 3));
}

double weight_of(int i, int j, int in, int out) {
  if (in == out) return i == j ? 1 : 0;
  const double scale = static_cast<double>(in) / out;
  return lanczos3_definition((j + 0.5) / scale - (i + 0.5));
}

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
}

void pack_rows(ImageView rgba) {
  const std::size_t row = static_cast<std::size_t>(rgba.width) * 4;
  for (int y = 1; y < rgba.height; ++y) {
    std::memmove(rgba.data + static_cast<std::size_t>(y) * row, rgba.row(y), row);
  }
}

}  // namespace

CUTOUT_SIMD void store_straight(const float* __restrict premultiplied, int pixels,
                                std::uint8_t* __restrict out) {
  for (int x = 0; x < pixels; ++x) {
    const float alpha = premultiplied[x * 4 + 3];
    const float scale = alpha >= 0.5F ? 255.0F / alpha : 0.0F;
    const float bytes[4] = {premultiplied[x * 4] * scale, premultiplied[x * 4 + 1] * scale,
                            premultiplied[x * 4 + 2] * scale, alpha};
    for (int c = 0; c < 4; ++c) {
      const float value = std::min(std::max(bytes[c] + 0.5F, 0.0F), 255.0F);
      out[x * 4 + c] = static_cast<std::uint8_t>(value);
    }
  }
}

Status reduce_in_place(ImageView rgba, int width, int height, ThreadPool& pool) {
  if (width < 1 || height < 1 || width > rgba.width || height > rgba.height) {
    return {Code::kBadInput, "cannot reduce " + std::to_string(rgba.width) + "x" +
                                 std::to_string(rgba.height) + " to " + std::to_string(width) +
                                 "x" + std::to_string(height)};
  }
  if (width == rgba.width && height == rgba.height) {
    pack_rows(rgba);
    return {};
  }
  const Taps rows = lanczos3_taps(rgba.height, height);
  const Taps columns = lanczos3_taps(rgba.width, width);
  const std::size_t row_bytes = static_cast<std::size_t>(width) * 4;
  const auto count = static_cast<std::size_t>(height);
  std::vector<std::uint8_t> bands(2 * kBand * row_bytes);
  const auto waiting = [&](std::size_t y) { return bands.data() + y % (2 * kBand) * row_bytes; };

  // One step computes band `start` and writes back the one before the previous, so two more steps
  // than bands empty the ring.
  for (std::size_t start = 0; start < count + 2 * kBand; start += kBand) {
    const auto body = [&](std::size_t begin, std::size_t end) {
      std::vector<float> filtered(filtered_row_size(rgba.width, columns), 0.0F);
      std::vector<float> pixels(row_bytes);
      for (std::size_t y = start + begin; y < start + end; ++y) {
        if (const std::size_t old = y - 2 * kBand; y >= 2 * kBand && old < count) {
          std::memcpy(rgba.data + old * row_bytes, waiting(old), row_bytes);
        }
        if (y < count) {
          filter_rows(rgba, rows, static_cast<int>(y), filtered.data());
          filter_columns(filtered.data(), columns, pixels.data());
          store_straight(pixels.data(), width, waiting(y));
        }
      }
    };
    pool.parallel_for(kBand, kGrain, body);
  }
  return {};
}

void reduce_scalar(ConstImageView rgba, int width, int height, std::uint8_t* out) {
  const double scale_x = static_cast<double>(rgba.width) / width;
  const double scale_y = static_cast<double>(rgba.height) / height;
  for (int oy = 0; oy < height; ++oy) {
    for (int ox = 0; ox < width; ++ox, out += 4) {
      double sum[4] = {};
      double total = 0;
      const int top = static_cast<int>(std::floor((oy - 2.5) * scale_y)) - 1;
      const int bottom = static_cast<int>(std::ceil((oy + 3.5) * scale_y)) + 1;
      const int left = static_cast<int>(std::floor((ox - 2.5) * scale_x)) - 1;
      const int right = static_cast<int>(std::ceil((ox + 3.5) * scale_x)) + 1;
      for (int y = std::max(top, 0); y < std::min(bottom, rgba.height); ++y) {
        const double wy = weight_of(oy, y, rgba.height, height);
        for (int x = std::max(left, 0); x < std::min(right, rgba.width); ++x) {
          const double weight = wy * weight_of(ox, x, rgba.width, width);
          const std::uint8_t* pixel = rgba.row(y) + static_cast<std::ptrdiff_t>(x) * 4;
          for (int c = 0; c < 3; ++c) sum[c] += weight * pixel[c] * pixel[3] / 255.0;
          sum[3] += weight * pixel[3];
          total += weight;
        }
      }
      const double alpha = sum[3] / total;
      out[3] = to_byte(alpha);
      for (int c = 0; c < 3; ++c) out[c] = out[3] == 0 ? 0 : to_byte(sum[c] / sum[3] * 255);
    }
  }
}

}  // namespace cutout
