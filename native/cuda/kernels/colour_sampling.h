#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/kernels/pyramid.h"
#include "cuda/table.h"
#include "matte/math/colour_sampling.h"
#include "matte/math/probability.h"

namespace cutout::cuda {

/// Moves an output's alpha to what samples of foreground and background colours say:
/// matte/colour_sampling.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | samples   | three planes of the guide's size: alpha, sample confidence, sampled alpha            |
/// | pyramid   | pyramid_size() floats                                                                |
/// | scratch   | sampling_scratch() floats                                                            |
/// | agreement | bit-equal to sample_colours                                                          |

inline std::size_t sampling_scratch(int width, int height) {
  const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  return 1 + size + (2 * size + sizeof(float) - 1) / sizeof(float);
}

// Bits of a network pixel.
inline constexpr std::uint8_t kInsideBit = 4;
inline constexpr std::uint8_t kFaintBit = 8;

/// The bits whose neighbourhood reaches no more than `distance` - 1 network pixels.
CUTOUT_HD std::uint8_t bits_nearer_than(int distance) {
  return static_cast<std::uint8_t>((distance > kForeRadius ? kForeSample : 0) |
                                   (distance > kBackRadius ? kBackSample : 0));
}

struct SamplingPlanes {
  GuidePlanes guide;
  float* alpha;
  float* confidence;
  float* sampled;
  float* known;          // 1 for foreground samples, 0 for background, kUnknown for neither
  std::uint8_t* bits;    // of network pixels; then of neighbourhoods
  std::uint8_t* in_row;  // of neighbourhoods in the row
  std::uint32_t* found;  // which of the near samples there are
};

/// Clamped alpha, no samples, and the bits of each network pixel.
struct BeginSampling {
  SamplingPlanes planes;
  const float* p;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = index_of(x, y, planes.guide.width);
    const float alpha = clamp01(p[i]);
    planes.alpha[i] = alpha;
    planes.confidence[i] = 0;
    planes.sampled[i] = 0;
    planes.bits[i] = static_cast<std::uint8_t>(
        label_of(alpha) | (is_inside(alpha) ? kInsideBit : 0) | (is_faint(alpha) ? kFaintBit : 0));
    if (x == 0 && y == 0) *planes.found = 0;
  }
};

/// The bits that `from` has in common with its neighbours in a line, `step` apart; `at` of `count`.
CUTOUT_HD std::uint8_t common_bits(const std::uint8_t* from, std::ptrdiff_t step, int at,
                                   int count) {
  unsigned common = *from;
  for (int k = 1; k <= kWideRadius && common != 0; ++k) {
    const std::uint8_t far = bits_nearer_than(k);
    if (at - k >= 0) common &= static_cast<unsigned>(from[-k * step] | far);
    if (at + k < count) common &= static_cast<unsigned>(from[k * step] | far);
  }
  return static_cast<std::uint8_t>(common);
}

struct CommonInRow {
  SamplingPlanes planes;

  CUTOUT_HD void operator()(int x, int y) const {
    const int width = planes.guide.width;
    const std::ptrdiff_t i = index_of(x, y, width);
    planes.in_row[i] = common_bits(planes.bits + i, 1, x, width);
  }
};

struct CommonInColumn {
  SamplingPlanes planes;

  CUTOUT_HD void operator()(int x, int y) const {
    const int width = planes.guide.width;
    const std::ptrdiff_t i = index_of(x, y, width);
    const std::uint8_t common = common_bits(planes.in_row + i, width, y, planes.guide.height);
    const auto near = static_cast<std::uint8_t>(common & (kForeSample | kBackSample));
    const auto labels =
        static_cast<std::uint8_t>(near | ((common & kInsideBit) != 0 ? kForeSample : 0));
    planes.bits[i] = common;
    planes.known[i] = level_of(labels);
    if ((near & ~atomic_load(planes.found)) != 0) atomic_or(planes.found, near);
  }
};

struct SampleColours {
  SamplingPlanes planes;
  DeviceLevel colours;

  CUTOUT_HD void operator()(int x, int y) const {
    if (*planes.found != (kForeSample | kBackSample)) return;
    const std::ptrdiff_t i = index_of(x, y, planes.guide.width);
    const std::uint8_t bits = planes.bits[i];
    if ((bits & (kForeSample | kBackSample | kInsideBit)) != 0) return;
    float colour[3];
    for (int c = 0; c < 3; ++c) colour[c] = guide_colour(planes.guide, c, i);
    float fore[kWeight];
    float back[kWeight];
    for (int k = 0; k < kWeight; ++k) {
      fore[k] = from_coarse(colours, k, x, y);
      back[k] = from_coarse(colours, kLayerSums + k, x, y);
    }
    const float alpha = planes.alpha[i];
    const Sample sample =
        limited_where_faint(sample_of(colour, fore, back, alpha), alpha, (bits & kFaintBit) != 0);
    planes.alpha[i] = moved_towards(alpha, sample);
    planes.confidence[i] = sample.confidence;
    planes.sampled[i] = sample.alpha;
  }
};

template <typename Executor>
void sample_colours(Executor& on, GuidePlanes guide, const float* p, float* pyramid, float* scratch,
                    float* samples) {
  const std::ptrdiff_t size = index_of(0, guide.height, guide.width);
  SamplingPlanes planes{};
  planes.guide = guide;
  planes.alpha = samples;
  planes.confidence = samples + size;
  planes.sampled = samples + 2 * size;
  planes.found = reinterpret_cast<std::uint32_t*>(scratch);
  planes.known = scratch + 1;
  planes.bits = reinterpret_cast<std::uint8_t*>(planes.known + size);
  planes.in_row = planes.bits + size;
  over_plane(on, guide.width, guide.height, BeginSampling{planes, p});
  over_plane(on, guide.width, guide.height, CommonInRow{planes});
  over_plane(on, guide.width, guide.height, CommonInColumn{planes});
  const DeviceLevel colours = spread_colours(on, guide, planes.known, kUnknown, pyramid);
  over_plane(on, guide.width, guide.height, SampleColours{planes, colours});
}

}  // namespace cutout::cuda
