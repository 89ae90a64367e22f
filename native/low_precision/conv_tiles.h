// The loops of the kernels for AMX. Each kernel includes them once, after defining CUTOUT_TARGET,
// the attribute of its instruction set, and CUTOUT_TILE_DOT(sums, inputs, weights), its
// instruction.
//
// An Arithmetic has, for kLanes output channels:
//   Sum, load(sums)                      of the tiles; kLanes of them
//   Finisher(task, group)                constants of the channels
//     finish(sums, output)               stores the outputs of one pixel
//   kWide; where true the Finisher also has finish(high, low, output)
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>

#include "low_precision/conv.h"

namespace cutout::low_precision {

namespace {

constexpr int kTilePixels = 16;
template <typename Arithmetic>
using Sums = std::array<typename Arithmetic::Sum, std::size_t{kTilePixels} * kLanes>;

/// Layout of the processor's tile configuration, palette 1.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{};
  std::array<std::uint8_t, 16> rows{};
};
static_assert(sizeof(TileConfig) == 64);

/// Tiles 0 to 3: sums of 16 pixels by 16 channels; 4 and 5: 64 bytes of inputs of 16 pixels; 6 and
/// 7: a chunk of weights.
class Tiles {
 public:
  CUTOUT_TARGET Tiles() {
    TileConfig config;
    for (std::size_t tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = 64;
      config.rows[tile] = 16;
    }
    _tile_loadconfig(&config);
  }
  CUTOUT_TARGET ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

/// 16 output pixels of one row; the last ones of a row begin earlier and are computed twice, so
/// that nothing is read beyond the row's window.
struct Segment {
  const std::uint8_t* window;
  std::uint8_t* output;
  int pixels;
};

class Segments {
 public:
  Segments(const ConvTask& task, int first_row, int last_row)
      : task_(task),
        first_row_(first_row),
        a_row_((task.output.width + kTilePixels - 1) / kTilePixels),
        count_((last_row - first_row) * a_row_) {}

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] Segment at(int index) const {
    const int last = std::max(0, task_.output.width - kTilePixels);
    const int y = first_row_ + index / a_row_;
    const int x = std::min(index % a_row_ * kTilePixels, last);
    return {task_.window(x, y), task_.output.at(x, y),
            std::min(kTilePixels, task_.output.width - x)};
  }

 private:
  const ConvTask& task_;
  int first_row_;
  int a_row_;
  int count_;
};

/// Finishes and stores a segment; `sums` are those of one panel, or of the high and of the low
/// bytes.
template <typename Arithmetic, typename... Panels>
CUTOUT_TARGET void write(const ConvTask& task, const Segment& segment, int group,
                         const typename Arithmetic::Finisher& finisher, const Panels&... sums) {
  std::uint8_t* output = task.group_at(segment.output, group);
  for (std::size_t i = 0; i < static_cast<std::size_t>(segment.pixels); ++i) {
    finisher.finish(Arithmetic::load(sums.data() + kLanes * i)..., output);
    output += task.output.stride;
  }
}

/// Two segments by two panels: every tile that is loaded is used twice.
template <typename Arithmetic>
CUTOUT_TARGET void multiply_2x2(const ConvTask& task, const Segment& a, const Segment& b,
                                const std::int8_t* first, const std::int8_t* second,
                                std::array<Sums<Arithmetic>, 4>& sums) {
  const std::ptrdiff_t stride = task.input.stride * task.conv->stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (const std::ptrdiff_t offset : task.offsets) {
    _tile_loadd(4, a.window + offset, stride);
    _tile_loadd(6, first, 64);
    CUTOUT_TILE_DOT(0, 4, 6);
    _tile_loadd(7, second, 64);
    CUTOUT_TILE_DOT(1, 4, 7);
    _tile_loadd(5, b.window + offset, stride);
    CUTOUT_TILE_DOT(2, 5, 6);
    CUTOUT_TILE_DOT(3, 5, 7);
    first += kChunkBytes;
    second += kChunkBytes;
  }
  _tile_stored(0, sums[0].data(), 64);
  _tile_stored(1, sums[1].data(), 64);
  _tile_stored(2, sums[2].data(), 64);
  _tile_stored(3, sums[3].data(), 64);
}

/// Four segments by one panel.
template <typename Arithmetic>
CUTOUT_TARGET void multiply_4x1(const ConvTask& task, const std::array<Segment, 4>& segments,
                                const std::int8_t* weights, std::array<Sums<Arithmetic>, 4>& sums) {
  const std::ptrdiff_t stride = task.input.stride * task.conv->stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (const std::ptrdiff_t offset : task.offsets) {
    _tile_loadd(6, weights, 64);
    _tile_loadd(4, segments[0].window + offset, stride);
    CUTOUT_TILE_DOT(0, 4, 6);
    _tile_loadd(5, segments[1].window + offset, stride);
    CUTOUT_TILE_DOT(1, 5, 6);
    _tile_loadd(4, segments[2].window + offset, stride);
    CUTOUT_TILE_DOT(2, 4, 6);
    _tile_loadd(5, segments[3].window + offset, stride);
    CUTOUT_TILE_DOT(3, 5, 6);
    weights += kChunkBytes;
  }
  _tile_stored(0, sums[0].data(), 64);
  _tile_stored(1, sums[1].data(), 64);
  _tile_stored(2, sums[2].data(), 64);
  _tile_stored(3, sums[3].data(), 64);
}

template <typename Arithmetic>
CUTOUT_TARGET void convolve_tiles(const ConvTask& task, int first_row, int last_row,
                                  int first_group, int last_group) {
  const Tiles tiles;
  const Segments segments(task, first_row, last_row);
  const int count = segments.count();
  const bool int16_weights = Arithmetic::kWide && task.conv->int16_weights;
  alignas(64) std::array<Sums<Arithmetic>, 4> sums;
  for (int group = first_group; group < last_group;) {
    const typename Arithmetic::Finisher finisher(task, group);
    if (!int16_weights && group + 1 == last_group) {
      for (int i = 0; i < count; i += 4) {
        std::array<Segment, 4> four;
        for (int k = 0; k < 4; ++k) {
          four[static_cast<std::size_t>(k)] = segments.at(std::min(i + k, count - 1));
        }
        multiply_4x1<Arithmetic>(task, four, task.weights(group), sums);
        for (std::size_t k = 0; k < 4; ++k)
          write<Arithmetic>(task, four[k], group, finisher, sums[k]);
      }
      return;
    }
    const std::int8_t* const first = task.weights(group);
    const std::int8_t* const second = first + task.panel_bytes();
    for (int i = 0; i < count; i += 2) {
      const Segment a = segments.at(i);
      const Segment b = segments.at(std::min(i + 1, count - 1));
      multiply_2x2<Arithmetic>(task, a, b, first, second, sums);
      if constexpr (Arithmetic::kWide) {
        if (int16_weights) {
          write<Arithmetic>(task, a, group, finisher, sums[0], sums[1]);
          write<Arithmetic>(task, b, group, finisher, sums[2], sums[3]);
          continue;
        }
      }
      const typename Arithmetic::Finisher next(task, group + 1);
      write<Arithmetic>(task, a, group, finisher, sums[0]);
      write<Arithmetic>(task, a, group + 1, next, sums[1]);
      write<Arithmetic>(task, b, group, finisher, sums[2]);
      write<Arithmetic>(task, b, group + 1, next, sums[3]);
    }
    group += int16_weights ? 1 : 2;
  }
}

}  // namespace

}  // namespace cutout::low_precision
