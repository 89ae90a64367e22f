#pragma once

#include <algorithm>

namespace cutout::low_precision {

inline constexpr int kResizeBits = 10;  // of the weights of a resize

/// The neighbours of an output pixel of a resize on one axis and the weight of the second, in
/// 1024ths.
struct Neighbours {
  int first;
  int second;
  int weight;

  /// The weight as a fraction of 1.
  [[nodiscard]] float fraction() const {
    return static_cast<float>(weight) * (1.0F / (1 << kResizeBits));
  }
};

/// Returns the neighbours in a resize that enlarges at pixel centres.
inline Neighbours neighbours(int at, int factor, int length) {
  // Centres: (at + 1/2) / factor - 1/2, in 1024ths. factor is a power of two: exact up to 512.
  const int place = ((2 * at + 1) << kResizeBits) / (2 * factor) - (1 << (kResizeBits - 1));
  const int inside = std::clamp(place, 0, (length - 1) << kResizeBits);
  const int first = inside >> kResizeBits;
  return {first, std::min(first + 1, length - 1), inside & ((1 << kResizeBits) - 1)};
}

/// Returns the neighbours in a resize that enlarges and whose first output pixel lies on the first
/// one of the input.
inline Neighbours neighbours_from_corner(int at, int factor, int length) {
  const int first = at / factor;
  return {first, std::min(first + 1, length - 1), at % factor * (1 << kResizeBits) / factor};
}

/// Returns the neighbours in a resize that reduces at pixel centres: the two pixels in the middle.
inline Neighbours neighbours_reduced(int at, int factor) {
  if (factor == 1) return {at, at, 0};
  const int first = at * factor + factor / 2 - 1;
  return {first, first + 1, 1 << (kResizeBits - 1)};
}

}  // namespace cutout::low_precision
