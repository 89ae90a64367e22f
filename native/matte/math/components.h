#pragma once

#include <cstdint>

#include "core/simd.h"
#include "matte/math/blocks.h"

namespace cutout {

/// What filter_components decides about a component (component_filter.h).

inline constexpr float kWisp = 0.1F;
inline constexpr float kHole = 0.9F;
inline constexpr std::int64_t kSubjectPart = 200;  // of the foreground pixels of the largest one
inline constexpr std::int64_t kPiecePart = 5000;
inline constexpr std::int64_t kHolePart = 50;  // of the network pixels of the component around it
inline constexpr int kPieceRadius = 8;         // a fraction 1/8 of the longer side
inline constexpr int kWispRadius = 16;

enum class Kind { kSubject, kPiece, kWisp, kHaze };

/// `foreground`: its network pixels with p >= 1/2, `most` those of the component that has most;
/// `reaches_wisp`: whether one has p >= kWisp.
CUTOUT_HD Kind kind_of(int foreground, bool reaches_wisp, int most) {
  if (foreground > 0 && foreground * kSubjectPart >= most) return Kind::kSubject;
  if (foreground > 0 && foreground * kPiecePart >= most) return Kind::kPiece;
  return reaches_wisp ? Kind::kWisp : Kind::kHaze;
}

/// 1 / `part` of the longer side in blocks (blocks.h), rounded up. Distances are measured between
/// these.
CUTOUT_HD int radius_in_blocks(int part, int width, int height) {
  const int longer = width > height ? width : height;
  const int unit = part * block_side(width, height);
  return (longer + unit - 1) / unit;
}

/// A hole's and the surrounding component's network pixels; p in the hole is at least kHole.
CUTOUT_HD bool is_filled(std::int64_t hole, std::int64_t around) {
  return hole * kHolePart <= around;
}

}  // namespace cutout
