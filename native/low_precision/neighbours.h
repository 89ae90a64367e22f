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

/// Returns the neighbours of the output pixel `at` of an enlargement at pixel centres, on a line of
/// `length` input pixels.
inline Neighbours neighbours(int at, int factor, int length) {
  // Centres: (at + 1/2) / factor - 1/2, in 1024ths. factor is a power of two: exact up to 512.
  const int place = ((2 * at + 1) << kResizeBits) / (2 * factor) - (1 << (kResizeBits - 1));
  const int inside = std::clamp(place, 0, (length - 1) << kResizeBits);
  const int first = inside >> kResizeBits;
  return {first, std::min(first + 1, length - 1), inside & ((1 << kResizeBits) - 1)};
}

}  // namespace cutout::low_precision
