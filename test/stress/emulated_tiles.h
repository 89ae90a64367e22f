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
struct Int8Tiles {
  struct Finisher {
    const low_precision::ConvTask* task;
    int group;
  };
  using Sum = std::int32_t;
  static constexpr bool kWide = true;

  static Finisher finisher(const low_precision::ConvTask& task, int group) {
    return {&task, group};
  }
  static void finish(const Sum* sums, const Finisher& finisher, std::uint8_t* output) {
    each(finisher, output, [&](int channel, int lane, std::uint8_t* pixel) {
      finish_int8(*finisher.task, channel, 0, sums[lane], pixel);
    });
  }
  static void finish(const Sum* high, const Sum* low, const Finisher& finisher,
                     std::uint8_t* output) {
    each(finisher, output, [&](int channel, int lane, std::uint8_t* pixel) {
      finish_int8(*finisher.task, channel, high[lane], low[lane], pixel);
    });
  }

  /// `output`: where the group's outputs of a pixel lie.
  template <typename Work>
  static void each(const Finisher& finisher, std::uint8_t* output, const Work& work) {
    std::uint8_t* const pixel = finisher.task->group_at(output, -finisher.group);
    for (int lane = 0; lane < low_precision::kLanes; ++lane) {
      work(finisher.group * low_precision::kLanes + lane, lane, pixel);
    }
  }
};

struct Bf16Tiles {
  using Finisher = Int8Tiles::Finisher;
  using Sum = float;
  static constexpr bool kWide = false;

  static Finisher finisher(const low_precision::ConvTask& task, int group) {
    return {&task, group};
  }
  static void finish(const Sum* sums, const Finisher& finisher, std::uint8_t* output) {
    Int8Tiles::each(finisher, output, [&](int channel, int lane, std::uint8_t* pixel) {
      finish_bf16(*finisher.task, channel, sums[lane], pixel);
    });
  }
};

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
