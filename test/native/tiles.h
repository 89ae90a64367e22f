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
    each(sums, inputs, [&](int row, int column, int group) {
      std::int32_t sum = get<std::int32_t>(sums, row, column);
      for (int i = 0; i < 4; ++i) {
        sum += get<std::uint8_t>(inputs, row, 4 * group + i) *
               get<std::int8_t>(weights, group, 4 * column + i);
      }
      put(sums, row, column, sum);
    });
  }
  /// TDPBF16PS: sums of two products.
  void dot_bf16(int sums, int inputs, int weights) {
    each(sums, inputs, [&](int row, int column, int group) {
      float sum = get<float>(sums, row, column);
      for (int i = 0; i < 2; ++i) {
        sum += bf16(inputs, row, 2 * group + i) * bf16(weights, group, 2 * column + i);
      }
      put(sums, row, column, sum);
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

  template <typename T>
  T get(int tile, int row, int place) {
    T value;
    std::memcpy(&value, at(tile)[index(row)].data() + index(place) * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void put(int tile, int row, int place, T value) {
    std::memcpy(at(tile)[index(row)].data() + index(place) * sizeof(T), &value, sizeof(T));
  }
  float bf16(int tile, int row, int place) {
    const std::uint32_t bits = std::uint32_t{get<std::uint16_t>(tile, row, place)} << 16U;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  template <typename Work>
  void each(int sums, int inputs, const Work& work) {
    for (int row = 0; row < rows(sums); ++row) {
      for (int column = 0; column < row_bytes(sums) / 4; ++column) {
        for (int group = 0; group < row_bytes(inputs) / 4; ++group) work(row, column, group);
      }
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
