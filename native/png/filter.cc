#include "png/filter.h"

#include <algorithm>
#include <cstdlib>

#include "core/simd.h"

namespace cutout::png {

namespace {

using Byte = std::uint8_t;

/// Paeth's predictor in 8-bit operations, of the estimate left + above - corner. |estimate - left|
/// is |above - corner|, |estimate - above| is |left - corner|; the third distance is their
/// difference where the two have opposite signs, and their sum, which is never the smallest, where
/// they have the same.
inline Byte paeth(Byte left, Byte above, Byte corner) {
  const Byte to_left = static_cast<Byte>(std::max(above, corner) - std::min(above, corner));
  const Byte to_above = static_cast<Byte>(std::max(left, corner) - std::min(left, corner));
  const Byte apart = static_cast<Byte>(std::max(to_left, to_above) - std::min(to_left, to_above));
  const Byte to_corner = (above > corner) == (left > corner) ? Byte{255} : apart;
  const Byte second = to_above <= to_corner ? above : corner;
  return to_left <= std::min(to_above, to_corner) ? left : second;
}

inline Byte average(Byte left, Byte above) {
  return static_cast<Byte>((left & above) + ((left ^ above) >> 1));
}

/// min(r, 256 - r), in a form that compilers recognise as a sum of absolute differences.
inline std::uint32_t weight(Byte residual) {
  return static_cast<std::uint32_t>(
      std::abs(static_cast<int>(static_cast<Byte>(residual ^ 128u)) - 128));
}

/// Writes the residuals of a row, `predicted(i)` subtracted, and returns the sum of their weights;
/// `size` is small enough for 32 bits.
template <typename Predicted>
CUTOUT_INLINE std::uint32_t subtract(const Byte* row, std::size_t size, Byte* out,
                                     const Predicted& predicted) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const Byte residual = static_cast<Byte>(row[i] - predicted(i));
    out[i] = residual;
    sum += weight(residual);
  }
  return sum;
}

// One function for each filter, compiled for every instruction set. `left` and `corner` are `row`
// and `above` one pixel earlier.

CUTOUT_SIMD std::uint32_t none(const Byte* row, std::size_t size, Byte* out) {
  return subtract(row, size, out, [](std::size_t) { return 0; });
}

CUTOUT_SIMD std::uint32_t difference(const Byte* row, const Byte* other, std::size_t size,
                                     Byte* out) {
  return subtract(row, size, out, [other](std::size_t i) { return other[i]; });
}

CUTOUT_SIMD std::uint32_t minus_average(const Byte* row, const Byte* left, const Byte* above,
                                        std::size_t size, Byte* out) {
  return subtract(row, size, out, [=](std::size_t i) { return average(left[i], above[i]); });
}

CUTOUT_SIMD std::uint32_t minus_paeth(const Byte* row, const Byte* left, const Byte* above,
                                      const Byte* corner, std::size_t size, Byte* out) {
  return subtract(row, size, out,
                  [=](std::size_t i) { return paeth(left[i], above[i], corner[i]); });
}

std::uint32_t filter_span(Filter filter, const Byte* row, const Byte* left, const Byte* above,
                          const Byte* corner, std::size_t size, Byte* out) {
  switch (filter) {
    case Filter::kSub:
      return difference(row, left, size, out);
    case Filter::kUp:
      return difference(row, above, size, out);
    case Filter::kAverage:
      return minus_average(row, left, above, size, out);
    case Filter::kPaeth:
      return minus_paeth(row, left, above, corner, size, out);
    case Filter::kNone:
      break;
  }
  return none(row, size, out);
}

constexpr std::size_t kSpan = std::size_t{1} << 16;
constexpr std::size_t kStep = 64;

CUTOUT_SIMD bool any_set(const Byte* row, const Byte* above) {
  Byte any = 0;
  for (std::size_t i = 0; i < kStep; ++i) any = static_cast<Byte>(any | row[i] | above[i]);
  return any != 0;
}

}  // namespace

std::uint64_t filter_row(Filter filter, const Byte* row, const Byte* above, std::size_t size,
                         std::size_t pixel, Byte* out) {
  const std::size_t first = std::min(size, pixel);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < first; ++i) {  // there is nothing to the left
    const bool up = filter == Filter::kUp || filter == Filter::kPaeth;
    const int predicted = up ? above[i] : filter == Filter::kAverage ? above[i] / 2 : 0;
    out[i] = static_cast<Byte>(row[i] - predicted);
    sum += weight(out[i]);
  }
  for (std::size_t at = first; at < size; at += kSpan) {
    sum += filter_span(filter, row + at, row + at - pixel, above + at, above + at - pixel,
                       std::min(kSpan, size - at), out + at);
  }
  return sum;
}

std::size_t leading_zeros(const Byte* row, const Byte* above, std::size_t size) {
  std::size_t i = 0;
  while (size - i >= kStep && !any_set(row + i, above + i)) i += kStep;
  while (i < size && (row[i] | above[i]) == 0) ++i;
  return i;
}

std::size_t trailing_zeros(const Byte* row, const Byte* above, std::size_t size) {
  std::size_t left = size;
  while (left >= kStep && !any_set(row + left - kStep, above + left - kStep)) left -= kStep;
  while (left > 0 && (row[left - 1] | above[left - 1]) == 0) --left;
  return size - left;
}

}  // namespace cutout::png
