// What becomes of the sums of a convolution, for every vector unit. Each kernel includes this once,
// after defining CUTOUT_TARGET, the attribute of its instruction set: a function is only inlined
// into one of the same instruction set.
//
// A Unit has registers of some of the kLanes output channels of a group:
//   Floats, Sums                         of 32 bits each; kCount of them hold a group
//   at_least(values, low), at_most(values, high)   NaN becomes `low`
//   rounded(values)                      to the nearest, to even
//   store_bytes(values, output)          those of a group, cut off to 0..255
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "low_precision/conv.h"

#define CUTOUT_KERNEL CUTOUT_TARGET inline __attribute__((always_inline))

namespace cutout::low_precision {

namespace {

template <typename Register>
CUTOUT_KERNEL Register load_unaligned(const void* from) {
  Register loaded;
  std::memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

/// A group's registers.
template <typename Unit>
using GroupSums = typename Unit::Sums[Unit::kCount];
template <typename Unit>
using GroupFloats = typename Unit::Floats[Unit::kCount];

/// Constants of kLanes output channels, and what becomes of their sums.
template <typename Unit>
struct Requantiser {
  GroupFloats<Unit> scale;
  GroupSums<Unit> bias;
  std::int32_t zero;
  float lower_bound;  // of floats
  bool floats;
};

template <typename Unit>
CUTOUT_KERNEL Requantiser<Unit> requantiser_of(const ConvTask& task, int group) {
  const Conv& conv = *task.conv;
  const float factor = task.floats ? task.input_scale : 1.0F;
  Requantiser<Unit> made{{}, {}, conv.zero, conv.relu ? 0.0F : -INFINITY, task.floats};
  for (int i = 0; i < Unit::kCount; ++i) {
    const auto at = static_cast<std::size_t>(group * kLanes + i * kLanes / Unit::kCount);
    made.scale[i] = load_unaligned<typename Unit::Floats>(&conv.scales[at]) * factor;
    made.bias[i] = load_unaligned<typename Unit::Sums>(&conv.bias[at]);
  }
  return made;
}

template <typename Unit>
CUTOUT_KERNEL void store_scaled(const GroupFloats<Unit>& scaled,
                                const Requantiser<Unit>& requantiser, std::uint8_t* output) {
  if (requantiser.floats) {
#pragma GCC unroll 4
    for (const auto& values : scaled) {
      const auto limited = Unit::at_least(values, requantiser.lower_bound);
      std::memcpy(output, &limited, sizeof limited);
      output += sizeof limited;
    }
    return;
  }
  GroupSums<Unit> rounded;
#pragma GCC unroll 4
  for (int i = 0; i < Unit::kCount; ++i) {
    // What does not fit 32 bits would become the smallest number: cut off before.
    const auto bounded = Unit::at_most(Unit::at_least(scaled[i], -1e6F), 1e6F);
    rounded[i] = Unit::rounded(bounded) + requantiser.zero;
  }
  Unit::store_bytes(rounded, output);
}

/// Requantises the sums of kLanes channels of one pixel.
template <typename Unit>
CUTOUT_KERNEL void requantise(const GroupSums<Unit>& sums, const Requantiser<Unit>& requantiser,
                              std::uint8_t* output) {
  GroupFloats<Unit> values;
#pragma GCC unroll 4
  for (int i = 0; i < Unit::kCount; ++i) {
    const auto biased = sums[i] + requantiser.bias[i];
    values[i] = __builtin_convertvector(biased, typename Unit::Floats) * requantiser.scale[i];
  }
  store_scaled<Unit>(values, requantiser, output);
}

/// Requantises sums of 16-bit weights likewise: 256 * high + low.
template <typename Unit>
CUTOUT_KERNEL void requantise(const GroupSums<Unit>& high, const GroupSums<Unit>& low,
                              const Requantiser<Unit>& requantiser, std::uint8_t* output) {
  using Floats = typename Unit::Floats;
  GroupFloats<Unit> values;
#pragma GCC unroll 4
  for (int i = 0; i < Unit::kCount; ++i) {
    const auto biased = low[i] + requantiser.bias[i];
    values[i] = (__builtin_convertvector(high[i], Floats) * 256.0F +
                 __builtin_convertvector(biased, Floats)) *
                requantiser.scale[i];
  }
  store_scaled<Unit>(values, requantiser, output);
}

}  // namespace

}  // namespace cutout::low_precision
