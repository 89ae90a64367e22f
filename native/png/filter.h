#pragma once

#include <cstddef>
#include <cstdint>

namespace cutout::png {

/// Filter types of the PNG specification, section 9; the value is the byte in front of a row.
enum class Filter : std::uint8_t { kNone = 0, kSub = 1, kUp = 2, kAverage = 3, kPaeth = 4 };

/// Filters one row into `out` and returns the sum of min(r, 256 - r) over its residuals r, by which
/// filters are chosen (PNG specification, section 12.7).
///
/// |            |                                                                          |
/// |------------|--------------------------------------------------------------------------|
/// | row, above | `size` bytes each; for the first row of an image `above` is all zero     |
/// | pixel      | bytes a pixel, 1..8; what lies left of the row counts as 0                |
/// | out        | `size` bytes, may not overlap row or above                                |
/// | size       | any, 0 too                                                                |
/// | threads    | reentrant                                                                 |
/// | agreement  | bit-equal to the scalar version, sum too                                  |
std::uint64_t filter_row(Filter filter, const std::uint8_t* row, const std::uint8_t* above,
                         std::size_t size, std::size_t pixel, std::uint8_t* out);

/// Number of leading (trailing) bytes that are 0 in both rows. Reentrant, bit-equal to a plain
/// loop.
std::size_t leading_zeros(const std::uint8_t* row, const std::uint8_t* above, std::size_t size);
std::size_t trailing_zeros(const std::uint8_t* row, const std::uint8_t* above, std::size_t size);

}  // namespace cutout::png
