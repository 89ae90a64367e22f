#pragma once

#include <type_traits>

// The loops of the kernels for AMX with tiles of arrays and the arithmetic of the definition: they
// run on every x86-64, so that the sanitizers see what they read and write.
#if defined(__x86_64__)

#include "native/tiles.h"

#define CUTOUT_TARGET
#define CUTOUT_TILE_DOT(sums, inputs, weights)                     \
  if constexpr (std::is_same_v<typename Arithmetic::Sum, float>) { \
    _tile_dpbf16ps(sums, inputs, weights);                         \
  } else {                                                         \
    _tile_dpbusd(sums, inputs, weights);                           \
  }
#include "low_precision/conv_tiles.h"
#include "stress/low_precision_programs.h"

namespace cutout::test {

/// Sums of a group of channels go to the definition one by one.
struct DefinedFinisher {
  DefinedFinisher(const low_precision::ConvTask& of, int which) : task(of), group(which) {}

  void finish(const std::int32_t* sums, std::uint8_t* output) const {
    each(output, [&](int channel, int lane, std::uint8_t* pixel) {
      finish_int8(task, channel, 0, sums[lane], pixel);
    });
  }
  void finish(const std::int32_t* high, const std::int32_t* low, std::uint8_t* output) const {
    each(output, [&](int channel, int lane, std::uint8_t* pixel) {
      finish_int8(task, channel, high[lane], low[lane], pixel);
    });
  }
  void finish(const float* sums, std::uint8_t* output) const {
    each(output, [&](int channel, int lane, std::uint8_t* pixel) {
      finish_bf16(task, channel, sums[lane], pixel);
    });
  }

  /// `output`: where the group's outputs of a pixel lie.
  template <typename Work>
  void each(std::uint8_t* output, const Work& work) const {
    std::uint8_t* const pixel = task.group_at(output, -group);
    for (int lane = 0; lane < low_precision::kLanes; ++lane) {
      work(group * low_precision::kLanes + lane, lane, pixel);
    }
  }

  const low_precision::ConvTask& task;
  int group;
};

template <typename Number, bool wide>
struct DefinedTiles {
  using Finisher = DefinedFinisher;
  using Sum = Number;
  static constexpr bool kWide = wide;
  static const Sum* load(const Sum* sums) { return sums; }
};
using Int8Tiles = DefinedTiles<std::int32_t, true>;
using Bf16Tiles = DefinedTiles<float, false>;

inline void conv_tiles_int8(const low_precision::ConvTask& task, int first_row, int last_row,
                            int first_group, int last_group) {
  low_precision::convolve_tiles<Int8Tiles>(task, first_row, last_row, first_group, last_group);
}
inline void conv_tiles_bf16(const low_precision::ConvTask& task, int first_row, int last_row,
                            int first_group, int last_group) {
  low_precision::convolve_tiles<Bf16Tiles>(task, first_row, last_row, first_group, last_group);
}

}  // namespace cutout::test

#endif
