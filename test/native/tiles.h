#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace cutout::test {

/// The eight tiles of a thread and what Intel's manual defines the instructions to do with them.
class Tiles {
 public:
  static Tiles& own() {
    thread_local Tiles tiles;
    return tiles;
  }

  /// From the 64 bytes of a tile configuration: bytes of a row from 16 on, rows from 48 on.
  void configure(const void* from) {
    std::memcpy(configuration_.data(), from, configuration_.size());
  }
  void zero(int tile) { at(tile) = {}; }
  void load(int tile, const void* from, std::ptrdiff_t stride) {
    zero(tile);
    for (int row = 0; row < rows(tile); ++row) {
      std::memcpy(at(tile)[index(row)].data(), static_cast<const char*>(from) + row * stride,
                  index(row_bytes(tile)));
    }
  }
  void store(int tile, void* to, std::ptrdiff_t stride) {
    for (int row = 0; row < rows(tile); ++row) {
      std::memcpy(static_cast<char*>(to) + row * stride, at(tile)[index(row)].data(),
                  index(row_bytes(tile)));
    }
  }

  /// TDPBUSD: sums of four products, unsigned by signed bytes.
  void dot_integers(int sums, int inputs, int weights) {
    each<std::int32_t>(sums, inputs, weights,
                       [](std::int32_t sum, const std::uint8_t* input, const std::uint8_t* weight) {
                         for (int i = 0; i < 4; ++i) {
                           sum += input[i] * static_cast<std::int8_t>(weight[i]);
                         }
                         return sum;
                       });
  }
  /// TDPBF16PS: sums of two products.
  void dot_bf16(int sums, int inputs, int weights) {
    each<float>(sums, inputs, weights,
                [](float sum, const std::uint8_t* input, const std::uint8_t* weight) {
                  for (int i = 0; i < 2; ++i) sum += bf16(input + 2 * i) * bf16(weight + 2 * i);
                  return sum;
                });
  }

 private:
  using Tile = std::array<std::array<std::uint8_t, 64>, 16>;

  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  Tile& at(int tile) { return tiles_[index(tile)]; }
  [[nodiscard]] int row_bytes(int tile) const {
    return configuration_[index(16 + 2 * tile)] + 256 * configuration_[index(17 + 2 * tile)];
  }
  [[nodiscard]] int rows(int tile) const { return configuration_[index(48 + tile)]; }

  static float bf16(const std::uint8_t* from) {
    std::uint16_t half;
    std::memcpy(&half, from, sizeof(half));
    const std::uint32_t bits = std::uint32_t{half} << 16U;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  /// Adds to every sum its products, four bytes of an input's row and of a weight's at a time, in
  /// their order.
  template <typename Sum, typename Add>
  void each(int sums, int inputs, int weights, const Add& add) {
    const int columns = row_bytes(sums) / 4;
    const int groups = row_bytes(inputs) / 4;
    for (int row = 0; row < rows(sums); ++row) {
      std::array<Sum, 16> line;
      std::memcpy(line.data(), at(sums)[index(row)].data(), sizeof(line));
      for (int group = 0; group < groups; ++group) {
        const std::uint8_t* const input = at(inputs)[index(row)].data() + 4 * group;
        const std::uint8_t* const weight = at(weights)[index(group)].data();
        for (int column = 0; column < columns; ++column) {
          line[index(column)] = add(line[index(column)], input, weight + 4 * column);
        }
      }
      std::memcpy(at(sums)[index(row)].data(), line.data(), sizeof(line));
    }
  }

  std::array<std::uint8_t, 64> configuration_{};
  std::array<Tile, 8> tiles_{};
};

}  // namespace cutout::test

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#undef _tile_dpbf16ps
#define _tile_loadconfig(from) cutout::test::Tiles::own().configure(from)
#define _tile_release() static_cast<void>(0)
#define _tile_zero(tile) cutout::test::Tiles::own().zero(tile)
#define _tile_loadd(tile, from, stride) cutout::test::Tiles::own().load(tile, from, stride)
#define _tile_stored(tile, to, stride) cutout::test::Tiles::own().store(tile, to, stride)
#define _tile_dpbusd(sums, inputs, weights) \
  cutout::test::Tiles::own().dot_integers(sums, inputs, weights)
#define _tile_dpbf16ps(sums, inputs, weights) \
  cutout::test::Tiles::own().dot_bf16(sums, inputs, weights)
