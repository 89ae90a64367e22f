#include "stress/device/host_network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace cutout::test {

namespace {

using cuda::Convolution;
using cuda::DeviceMap;

float from_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return (half & 0x8000) != 0 ? -value : value;
}

/// To the nearest, to even.
std::uint16_t to_half(float value) {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16 & 0x8000);
  const float size = std::abs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00);
  if (size >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7C00);
  int exponent = 0;
  (void)std::frexp(size, &exponent);
  const int shift = std::max(exponent - 11, -24);  // of the last of 11 bits
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -shift)));
  // 2048 units carry into the exponent.
  const std::uint32_t bits =
      units < 1024 ? units : units + (static_cast<std::uint32_t>(shift + 24) << 10U);
  return static_cast<std::uint16_t>(sign | bits);
}

std::uint16_t& half_at(const DeviceMap& map, int image, int x, int y, int channel) {
  return static_cast<std::uint16_t*>(
      map.data)[image * map.image + static_cast<std::ptrdiff_t>(y) * map.row + x * map.pixel +
                channel];
}

float& float_at(const DeviceMap& map, int image, int x, int y, int channel) {
  return static_cast<float*>(
      map.data)[image * map.image + static_cast<std::ptrdiff_t>(y) * map.row + x * map.pixel +
                channel];
}

template <typename Body>
int over(const DeviceMap& map, const Body& body) {
  for (int image = 0; image < map.images; ++image)
    for (int y = 0; y < map.height; ++y)
      for (int x = 0; x < map.width; ++x)
        for (int channel = 0; channel < map.channels; ++channel) body(image, x, y, channel);
  return 0;
}

/// The value at a place between pixels.
template <typename At>
float between(float x, float y, int width, int height, const At& at) {
  x = std::clamp(x, 0.0F, static_cast<float>(width - 1));
  y = std::clamp(y, 0.0F, static_cast<float>(height - 1));
  const int left = std::min(static_cast<int>(x), width - 1);
  const int top = std::min(static_cast<int>(y), height - 1);
  const int right = std::min(left + 1, width - 1);
  const int bottom = std::min(top + 1, height - 1);
  const float across = x - static_cast<float>(left);
  const float down = y - static_cast<float>(top);
  const float upper = at(left, top) * (1 - across) + at(right, top) * across;
  const float lower = at(left, bottom) * (1 - across) + at(right, bottom) * across;
  return upper * (1 - down) + lower * down;
}

float centre(int at, int factor) {
  return (static_cast<float>(at) + 0.5F) / static_cast<float>(factor) - 0.5F;
}

int take_planes(const float* planes, int channels, int image, DeviceMap output, void*) {
  output.images = 1;
  return over(output, [&](int, int x, int y, int channel) {
    const std::ptrdiff_t at =
        (static_cast<std::ptrdiff_t>(channel) * output.height + y) * output.width + x;
    half_at(output, image, x, y, channel) = channel < channels ? to_half(planes[at]) : 0;
  });
}

int convolve(Convolution what, void*) {
  if (what.tile != 0 || (what.added.data != nullptr && what.input.channels == 4))
    return cuda::NetworkTable::kWrongTile;
  const cuda::Window& window = what.window;
  return over(what.output, [&](int image, int x, int y, int output) {
    double sum = what.bias[output];
    const std::uint16_t* weight = what.weights + static_cast<std::ptrdiff_t>(output) *
                                                     window.height * window.width *
                                                     what.input.channels;
    for (int row = 0; row < window.height; ++row) {
      for (int column = 0; column < window.width; ++column, weight += what.input.channels) {
        const int from_y = y * window.stride - window.top + row * window.dilation;
        const int from_x = x * window.stride - window.left + column * window.dilation;
        if (from_y < 0 || from_y >= what.input.height || from_x < 0 || from_x >= what.input.width)
          continue;
        for (int c = 0; c < what.input.channels; ++c) {
          sum += static_cast<double>(from_half(half_at(what.input, image, from_x, from_y, c))) *
                 static_cast<double>(from_half(weight[c]));
        }
      }
    }
    auto value = static_cast<float>(sum);
    if (what.relu) value = std::max(value, 0.0F);
    if (what.to_floats) {
      float_at(what.output, image, x, y, output) = value;
      return;
    }
    std::uint16_t made = to_half(value);
    if (what.added.data != nullptr)
      made = to_half(from_half(made) + from_half(half_at(what.added, image, x, y, output)));
    half_at(what.output, image, x, y, output) = made;
  });
}

int max_pool(DeviceMap input, int side, int stride, DeviceMap output, void*) {
  return over(output, [&](int image, int x, int y, int channel) {
    float largest = -INFINITY;
    for (int row = y * stride; row < std::min(y * stride + side, input.height); ++row)
      for (int column = x * stride; column < std::min(x * stride + side, input.width); ++column)
        largest = std::max(largest, from_half(half_at(input, image, column, row, channel)));
    half_at(output, image, x, y, channel) = to_half(largest);
  });
}

int enlarge_map(DeviceMap input, int factor, DeviceMap output, void*) {
  return over(output, [&](int image, int x, int y, int channel) {
    half_at(output, image, x, y, channel) = to_half(between(
        centre(x, factor), centre(y, factor), input.width, input.height, [&](int column, int row) {
          return from_half(half_at(input, image, column, row, channel));
        }));
  });
}

int add_maps(DeviceMap a, DeviceMap b, bool relu, DeviceMap output, void*) {
  return over(output, [&](int image, int x, int y, int channel) {
    const float sum =
        from_half(half_at(a, image, x, y, channel)) + from_half(half_at(b, image, x, y, channel));
    half_at(output, image, x, y, channel) = to_half(relu ? std::max(sum, 0.0F) : sum);
  });
}

int copy_map(DeviceMap input, DeviceMap output, void*) {
  return over(input, [&](int image, int x, int y, int channel) {
    half_at(output, image, x, y, channel) = half_at(input, image, x, y, channel);
  });
}

int give_plane(DeviceMap input, int image, int factor, float* plane, void*) {
  const int width = input.width * factor;
  for (int y = 0; y < input.height * factor; ++y) {
    for (int x = 0; x < width; ++x) {
      plane[static_cast<std::ptrdiff_t>(y) * width + x] =
          between(centre(x, factor), centre(y, factor), input.width, input.height,
                  [&](int column, int row) { return float_at(input, image, column, row, 0); });
    }
  }
  return 0;
}

}  // namespace

cuda::NetworkTable host_network() {
  cuda::NetworkTable table{};
  table.take_planes = take_planes;
  table.convolve = convolve;
  table.tiles = 2;
  table.max_pool = max_pool;
  table.enlarge_map = enlarge_map;
  table.add_maps = add_maps;
  table.copy_map = copy_map;
  table.give_plane = give_plane;
  return table;
}

}  // namespace cutout::test
