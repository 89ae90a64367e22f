#pragma once

#include "low_precision/unit_avx512.h"

// GCC 12 takes the undefined operands of its own AVX-512 functions for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace cutout::low_precision {

namespace {

/// What an Arithmetic of conv_avx512.h and conv_tiles.h in bf16 has beside its products.
struct Bf16Sums {
  using Sum = float;
  using Sums = Avx512Unit::Floats;
  static constexpr bool kWide = false;
  /// Constants of kLanes output channels.
  struct Finisher {
    Sums bias;
    float lower_bound;
    bool floats;
  };

  CUTOUT_KERNEL static Finisher finisher(const ConvTask& task, int group) {
    const auto at = static_cast<std::size_t>(group * kLanes);
    return {load_unaligned<Sums>(&task.conv->float_bias[at]), task.conv->relu ? 0.0F : -INFINITY,
            task.floats};
  }
  /// Stores the outputs of one pixel.
  CUTOUT_KERNEL static void finish(const Sums& sums, const Finisher& finisher,
                                   std::uint8_t* output) {
    const Sums value = Avx512Unit::at_least(sums + finisher.bias, finisher.lower_bound);
    if (finisher.floats) {
      std::memcpy(output, &value, sizeof value);
      return;
    }
    const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(output), rounded);
  }
};

}  // namespace

}  // namespace cutout::low_precision

#pragma GCC diagnostic pop
