#include "low_precision/convolution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/simd.h"
#include "low_precision/blocks.h"
#include "low_precision/rows.h"

namespace cutout::low_precision {

namespace {

/// The largest side of a kernel, border or step, and number of channels.
constexpr std::int64_t kMaxSide = 1 << 10;
constexpr std::int64_t kMaxChannels = 1 << 16;

/// Values of a block's rows, which stay in a core's cache, and pixels of a block, a multiple of
/// what every kernel takes at once.
constexpr int kBlockValues = 1 << 17;
constexpr int kLeastPixels = 48;
constexpr int kMostPixels = 192;
/// Pixels whose planes are interleaved at a time.
constexpr std::size_t kStripPixels = 4096;
/// Side of the square in which planes become pixels and pixels planes.
constexpr int kTile = 16;

Status refused(const char* what) {
  return {Code::kModel, std::string("A convolution of the network cannot be used: ") + what};
}

/// Pixels [0, count) of planes that lie `area` apart as rows of `stride` values.
CUTOUT_SIMD void interleave(const float* planes, std::size_t area, int channels, int count,
                            Bf16* to, std::ptrdiff_t stride) {
  std::array<Bf16, std::size_t{kTile} * kTile> tile{};
  for (int channel = 0; channel < channels; channel += kTile) {
    const int own = std::min(kTile, channels - channel);
    for (int pixel = 0; pixel < count; pixel += kTile) {
      const int wide = std::min(kTile, count - pixel);
      for (int c = 0; c < own; ++c) {
        const float* const from = planes + static_cast<std::size_t>(channel + c) * area + pixel;
        Bf16* const row = tile.data() + c * kTile;
        for (int p = 0; p < wide; ++p) row[p] = bf16_of(from[p]);
      }
      for (int p = 0; p < wide; ++p) {
        Bf16* const row = to + (pixel + p) * stride + channel;
        const Bf16* const from = tile.data() + p;
        for (int c = 0; c < own; ++c) row[c] = from[c * kTile];
      }
    }
  }
}

/// The first `columns` of rows as planes that lie `area` apart.
CUTOUT_SIMD void separate(const float* rows, int stride, int count, int columns, float* planes,
                          std::size_t area) {
  for (int first = 0; first < count; first += kTile) {
    const int wide = std::min(kTile, count - first);
    for (int column = 0; column < columns; ++column) {
      const float* const from = rows + std::ptrdiff_t{first} * stride + column;
      float* const to = planes + static_cast<std::size_t>(column) * area + first;
      for (int p = 0; p < wide; ++p) to[p] = from[std::ptrdiff_t{p} * stride];
    }
  }
}

/// The sum of four pixels by their weights.
CUTOUT_SIMD void blend(const std::array<const Bf16*, 4>& pixels,
                       const std::array<float, 4>& weights, int channels, Bf16* to) {
  const Bf16* const a = pixels[0];
  const Bf16* const b = pixels[1];
  const Bf16* const c = pixels[2];
  const Bf16* const d = pixels[3];
  for (int i = 0; i < channels; ++i) {
    to[i] = bf16_of(weights[0] * float_of(a[i]) + weights[1] * float_of(b[i]) +
                    weights[2] * float_of(c[i]) + weights[3] * float_of(d[i]));
  }
}

/// A map of pixels, read between its pixels; what is outside is 0.
struct Sampler {
  const Bf16* map;
  int channels;
  int height;
  int width;

  void read(int x, int y, Bf16* to) const {
    if (y >= 0 && y < height && x >= 0 && x < width) {
      std::copy_n(at(x, y), channels, to);
    } else {
      std::fill_n(to, channels, Bf16{0});
    }
  }

  void read(float x, float y, float factor, Bf16* to) const {
    // Not a number is outside too.
    if (!(y > -1 && y < static_cast<float>(height) && x > -1 && x < static_cast<float>(width))) {
      std::fill_n(to, channels, Bf16{0});
      return;
    }
    const float top = std::floor(y);
    const float left = std::floor(x);
    const std::array<float, 2> rows{1 - (y - top), y - top};
    const std::array<float, 2> columns{1 - (x - left), x - left};
    std::array<const Bf16*, 4> pixels{};
    std::array<float, 4> weights{};
    for (std::size_t i = 0; i < 4; ++i) {
      const int row = static_cast<int>(top) + static_cast<int>(i / 2);
      const int column = static_cast<int>(left) + static_cast<int>(i % 2);
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      pixels[i] = inside ? at(column, row) : map;
      weights[i] = inside ? factor * rows[i / 2] * columns[i % 2] : 0;
    }
    blend(pixels, weights, channels, to);
  }

 private:
  [[nodiscard]] const Bf16* at(int x, int y) const {
    return map + (std::ptrdiff_t{y} * width + x) * channels;
  }
};

}  // namespace

Status Convolution::make(bool bf16, const Geometry& geometry, std::span<const float> constants,
                         std::span<const std::int8_t> weights, Convolution& made) {
  const auto within = [](std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most;
  };
  const auto [height, width] = geometry.kernel;
  if (!within(geometry.channels, 1, kMaxChannels) || !within(geometry.outputs, 1, kMaxChannels)) {
    return refused("its number of channels.");
  }
  const bool small =
      within(height, 1, kMaxSide) && within(width, 1, kMaxSide) &&
      within(geometry.stride, 1, kMaxSide) && within(geometry.dilation, 1, kMaxSide) &&
      std::ranges::all_of(geometry.pads,
                          [&within](std::int64_t pad) { return within(pad, 0, kMaxSide); });
  if (!small) return refused("its kernel.");
  made = {};
  made.geometry_ = geometry;
  const std::int64_t inputs = height * width * geometry.channels;
  const Status status =
      Matrix::take(bf16, inputs, geometry.outputs, geometry.relu, constants, weights, made.matrix_);
  if (!status.ok()) return status;
  made.inputs_ = static_cast<int>(inputs);
  if (!constants.empty() || !weights.empty()) return refused("its number of weights or biases.");
  made.block_pixels_ =
      std::clamp(kBlockValues / padded_columns(made.inputs_) / kLeastPixels * kLeastPixels,
                 kLeastPixels, kMostPixels);
  return {};
}

std::array<std::int64_t, 2> Convolution::Geometry::output_size(std::int64_t height,
                                                               std::int64_t width) const {
  const auto along = [this](std::int64_t side, std::size_t axis) {
    const std::int64_t reach = dilation * (kernel[axis] - 1) + 1;
    const std::int64_t room = side + pads[axis] + pads[axis + 2] - reach;
    return side < 1 || room < 0 ? 0 : room / stride + 1;
  };
  return {along(height, 0), along(width, 1)};
}

bool Convolution::is_pointwise() const {
  return !geometry_.deformable && geometry_.kernel == std::array<std::int64_t, 2>{1, 1} &&
         geometry_.stride == 1 && geometry_.pads == std::array<std::int64_t, 4>{};
}

std::size_t Convolution::map_bytes(std::size_t pixels) const {
  return is_pointwise()
             ? 0
             : aligned(pixels * static_cast<std::size_t>(geometry_.channels) * sizeof(Bf16));
}

std::size_t Convolution::block_bytes() const {
  const auto pixels = static_cast<std::size_t>(block_pixels_);
  return ProductRows::bytes(matrix_.bf16(), inputs_, pixels) +
         aligned(pixels * static_cast<std::size_t>(matrix_.outputs()) * sizeof(float));
}

std::size_t Convolution::bytes_of_run(std::int64_t height, std::int64_t width) const {
  return map_bytes(static_cast<std::size_t>(height * width)) + kMaxRunningParts * block_bytes();
}

void Convolution::sample(const Image& image, const Bf16* map, std::size_t first, int pixels,
                         Bf16* rows) const {
  const auto channels = static_cast<int>(geometry_.channels);
  const auto kernel_width = static_cast<int>(geometry_.kernel[1]);
  const int taps = static_cast<int>(geometry_.kernel[0]) * kernel_width;
  const auto stride = static_cast<int>(geometry_.stride);
  const auto dilation = static_cast<int>(geometry_.dilation);
  const auto [height, width] = geometry_.output_size(image.height, image.width);
  const auto area = static_cast<std::size_t>(height * width);
  const std::ptrdiff_t row_stride = padded_columns(inputs_);
  const Sampler sampler{map, channels, image.height, image.width};
  for (int tap = 0; tap < taps; ++tap) {
    const int down = tap / kernel_width * dilation - static_cast<int>(geometry_.pads[0]);
    const int right = tap % kernel_width * dilation - static_cast<int>(geometry_.pads[1]);
    for (int i = 0; i < pixels; ++i) {
      const std::size_t at = first + static_cast<std::size_t>(i);
      const int y = static_cast<int>(at / static_cast<std::size_t>(width)) * stride + down;
      const int x = static_cast<int>(at % static_cast<std::size_t>(width)) * stride + right;
      Bf16* const to = rows + i * row_stride + tap * channels;
      if (!geometry_.deformable) {
        sampler.read(x, y, to);
        continue;
      }
      const float* const offset = image.offsets + static_cast<std::size_t>(2 * tap) * area + at;
      sampler.read(static_cast<float>(x) + offset[area], static_cast<float>(y) + offset[0],
                   image.masks[static_cast<std::size_t>(tap) * area + at], to);
    }
  }
}

Status Convolution::run(ConvKernel kernel, const Image& image, std::span<std::uint8_t> memory,
                        const Parallel& parallel, const CancelToken* token) const {
  const auto channels = static_cast<int>(geometry_.channels);
  const auto outputs = static_cast<int>(geometry_.outputs);
  const std::size_t pixels =
      static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
  const auto [height, width] = geometry_.output_size(image.height, image.width);
  const auto area = static_cast<std::size_t>(height * width);
  auto* const map = reinterpret_cast<Bf16*>(memory.data());
  if (!is_pointwise()) {
    const std::size_t strips = (pixels + kStripPixels - 1) / kStripPixels;
    const Status status =
        for_each_part(strips, parallel, token, [&](std::size_t, const auto& each) {
          each([&](std::size_t strip) {
            const std::size_t first = strip * kStripPixels;
            interleave(image.input + first, pixels, channels,
                       static_cast<int>(std::min(kStripPixels, pixels - first)),
                       map + first * static_cast<std::size_t>(channels), channels);
          });
        });
    if (!status.ok()) return status;
  }
  const auto most = static_cast<std::size_t>(block_pixels_);
  return for_each_part(
      (area + most - 1) / most, parallel, token, [&](std::size_t part, const auto& each) {
        std::uint8_t* const own = memory.data() + map_bytes(pixels) + part * block_bytes();
        const ProductRows rows(matrix_.bf16(), inputs_, most, own);
        auto* const made =
            reinterpret_cast<float*>(own + ProductRows::bytes(matrix_.bf16(), inputs_, most));
        each([&](std::size_t unit) {
          const std::size_t first = unit * most;
          const auto count = static_cast<int>(std::min(most, area - first));
          if (is_pointwise()) {
            interleave(image.input + first, pixels, channels, count, rows.values(),
                       padded_columns(inputs_));
          } else {
            sample(image, map, first, count, rows.values());
          }
          rows.round(count);
          const int columns = matrix_.outputs();
          matrix_.multiply(kernel, rows, {made, columns, count, columns}, nullptr);
          separate(made, columns, count, outputs, image.output + first, area);
        });
      });
}

}  // namespace cutout::low_precision
