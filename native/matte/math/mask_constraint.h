#pragma once

#include <cstddef>
#include <cstdint>

#include "core/simd.h"
#include "matte/math/probability.h"

namespace cutout {

/// A network pixel under a mask (matte/mask_constraint.h).

inline constexpr int kIn = 243;             // of 255: at least this is in
inline constexpr int kOut = 12;             // of 255: at most this is out
inline constexpr int kBand = 4;             // blocks
inline constexpr int kAgreementRadius = 8;  // blocks
inline constexpr int kSoftRadius = 2;       // network pixels

/// The two samples of one axis that a value is interpolated from.
struct LinearTap {
  int first;
  int second;
  double weight;  // of the second
};

/// A mask between four of its pixels.
CUTOUT_HD std::uint8_t mask_between(const std::uint8_t* mask, int width, const LinearTap& x,
                                    const LinearTap& y) {
  const std::uint8_t* const above = mask + static_cast<std::ptrdiff_t>(y.first) * width;
  const std::uint8_t* const below = mask + static_cast<std::ptrdiff_t>(y.second) * width;
  const double top = above[x.first] * (1 - x.weight) + above[x.second] * x.weight;
  const double bottom = below[x.first] * (1 - x.weight) + below[x.second] * x.weight;
  return static_cast<std::uint8_t>(top * (1 - y.weight) + bottom * y.weight + 0.5);
}

/// Sums over the network pixels of some blocks. p is added up in units of 2^-32, so that sums are
/// exact, in any order.
struct MaskSums {
  std::int64_t in_p;
  std::int64_t out_p;
  int in;
  int out;

  CUTOUT_HD void add(const MaskSums& other, int sign = 1) {
    in_p += sign * other.in_p;
    out_p += sign * other.out_p;
    in += sign * other.in;
    out += sign * other.out;
  }

  CUTOUT_HD void add_pixel(float p, std::uint8_t mask) {
    const auto units = static_cast<std::int64_t>(p * 4294967296.0F);
    if (mask >= kIn) {
      ++in;
      in_p += units;
    } else if (mask <= kOut) {
      ++out;
      out_p += units;
    }
  }
};

/// The network pixels of a block whose first one is (left, top).
CUTOUT_HD MaskSums sum_block(const float* p, const std::uint8_t* mask, int width, int height,
                             int side, int left, int top) {
  MaskSums sums = {0, 0, 0, 0};
  for (int y = top; y < top + side && y < height; ++y) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(y) * width;
    for (int x = left; x < left + side && x < width; ++x) sums.add_pixel(p[row + x], mask[row + x]);
  }
  return sums;
}

/// What the network pixels around a block say.
struct Guidance {
  float share;      // b
  float agreement;  // c
};

/// `in` and `out`: network pixels up to kBand blocks away; `wide`: up to kAgreementRadius.
CUTOUT_HD Guidance guidance_of(int in, int out, const MaskSums& wide) {
  Guidance guidance = {0.5F, 1.0F};
  if (in + out > 0) {
    guidance.share = static_cast<float>(static_cast<double>(in) / static_cast<double>(in + out));
  }
  if (wide.in > 0 && wide.out > 0) {
    const double inside = static_cast<double>(wide.in_p) / static_cast<double>(wide.in);
    const double outside = static_cast<double>(wide.out_p) / static_cast<double>(wide.out);
    const double difference = (inside - outside) / 4294967296.0;
    guidance.agreement = clamp01(static_cast<float>((difference - 0.25) / 0.5));
  }
  return guidance;
}

CUTOUT_HD float between(float first, float second, float weight) {
  return first + weight * (second - first);
}

/// Between the centres of four of the blocks, `columns` in a row.
CUTOUT_HD Guidance guidance_between(const Guidance* blocks, int columns, const LinearTap& x,
                                    const LinearTap& y) {
  const Guidance* const above = blocks + static_cast<std::ptrdiff_t>(y.first) * columns;
  const Guidance* const below = blocks + static_cast<std::ptrdiff_t>(y.second) * columns;
  const auto across = static_cast<float>(x.weight);
  const auto down = static_cast<float>(y.weight);
  return {between(between(above[x.first].share, above[x.second].share, across),
                  between(below[x.first].share, below[x.second].share, across), down),
          between(between(above[x.first].agreement, above[x.second].agreement, across),
                  between(below[x.first].agreement, below[x.second].agreement, across), down)};
}

/// Mean of the mask around a network pixel, 0..1; beyond the border that is repeated.
CUTOUT_HD float soft_mask(const std::uint8_t* mask, int width, int height, int x, int y) {
  const auto inside = [](int at, int count) { return at < 0 ? 0 : (at < count ? at : count - 1); };
  int sum = 0;
  for (int dy = -kSoftRadius; dy <= kSoftRadius; ++dy) {
    const std::uint8_t* const row =
        mask + static_cast<std::ptrdiff_t>(inside(y + dy, height)) * width;
    for (int dx = -kSoftRadius; dx <= kSoftRadius; ++dx) sum += row[inside(x + dx, width)];
  }
  constexpr int kSide = 2 * kSoftRadius + 1;
  return static_cast<float>(sum) / (255.0F * kSide * kSide);
}

/// p' of one network pixel; `soft` matters only where the network does not agree.
CUTOUT_HD float constrained(float p, std::uint8_t mask, float soft, const Guidance& guidance) {
  const float low = mask >= kIn ? clamp01(4 * guidance.share - 3) : 0.0F;
  const float high = mask <= kOut ? clamp01(4 * guidance.share) : 1.0F;
  const float mixed = guidance.agreement * p + (1 - guidance.agreement) * soft;
  return mixed < low ? low : (mixed > high ? high : mixed);
}

}  // namespace cutout
