#include "scalar/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "image/math/network_input.h"

namespace cutout::test {

namespace {

/// Weight of input `j` in output `i` of area_taps (image/taps.h), from its definition.
double area_weight(int i, int j, int in, int out) {
  const double scale = static_cast<double>(in) / out;
  if (out <= in) {
    return std::max(0.0, std::min((i + 1) * scale, j + 1.0) - std::max(i * scale, 1.0 * j)) / scale;
  }
  const double centre = std::clamp((i + 0.5) * scale - 0.5, 0.0, in - 1.0);
  return std::max(0.0, 1 - std::abs(centre - j));
}

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

/// The Catmull-Rom cubic.
double cubic_at(double x) {
  const double a = std::abs(x);
  if (a >= 2) return 0;
  return a < 1 ? (1.5 * a - 2.5) * a * a + 1 : ((-0.5 * a + 2.5) * a - 4) * a + 2;
}

using Premultiplied = std::array<double, 4>;

/// Between `pixels` 1 and 2 of 4, overshoot limited.
Premultiplied cubic_between(const std::array<Premultiplied, 4>& pixels, double fraction) {
  Premultiplied sum = {};
  for (int k = 0; k < 4; ++k) {
    const auto i = static_cast<std::size_t>(k);
    for (std::size_t c = 0; c < 4; ++c) sum[c] += cubic_at(k - 1 - fraction) * pixels[i][c];
  }
  const double alpha = std::clamp(sum[3], 0.0, 255.0);
  const double scale = sum[3] > 255 ? 255 / sum[3] : 1;
  for (std::size_t c = 0; c < 3; ++c) sum[c] = std::clamp(sum[c] * scale, 0.0, alpha);
  sum[3] = alpha;
  return sum;
}

}  // namespace

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

void enlarge_scalar(ConstImageView rgba, int width, int height, std::uint8_t* out) {
  const auto pixel_at = [&](int x, int y) {  // the border repeated
    const std::uint8_t* pixel =
        rgba.row(std::clamp(y, 0, rgba.height - 1)) + std::clamp(x, 0, rgba.width - 1) * 4L;
    const double alpha = pixel[3];
    return Premultiplied{pixel[0] * alpha / 255, pixel[1] * alpha / 255, pixel[2] * alpha / 255,
                         alpha};
  };
  for (int oy = 0; oy < height; ++oy) {
    const double v = (oy + 0.5) * rgba.height / height - 0.5;
    const int y = static_cast<int>(std::floor(v));
    for (int ox = 0; ox < width; ++ox, out += 4) {
      const double u = (ox + 0.5) * rgba.width / width - 0.5;
      const int x = static_cast<int>(std::floor(u));
      std::array<Premultiplied, 4> columns;
      for (int k = 0; k < 4; ++k) {
        const int column = x - 1 + k;
        columns[static_cast<std::size_t>(k)] =
            cubic_between({pixel_at(column, y - 1), pixel_at(column, y), pixel_at(column, y + 1),
                           pixel_at(column, y + 2)},
                          v - y);
      }
      const Premultiplied value = cubic_between(columns, u - x);
      out[3] = to_byte(value[3]);
      for (std::size_t c = 0; c < 3; ++c) {
        out[c] = out[3] == 0 ? 0 : to_byte(value[c] / value[3] * 255);
      }
    }
  }
}

void resize_plane_scalar(std::span<const float> plane, int in_width, int in_height, int width,
                         int height, std::span<float> out) {
  auto next = out.begin();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double sum = 0;
      for (int j = 0; j < in_height; ++j) {
        const double row = area_weight(y, j, in_height, height);
        if (row == 0) continue;
        for (int i = 0; i < in_width; ++i) {
          sum += row * area_weight(x, i, in_width, width) *
                 static_cast<double>(
                     plane[static_cast<std::size_t>(j) * static_cast<std::size_t>(in_width) +
                           static_cast<std::size_t>(i)]);
        }
      }
      *next++ = static_cast<float>(sum);
    }
  }
}

}  // namespace cutout::test
