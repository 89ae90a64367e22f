#pragma once

#include <cstdint>
#include <span>

namespace cutout::png {

/// Lengths of an optimal prefix code for `counts` with none above `limit`; 0 for unused symbols.
/// The code is complete and has at least two symbols (unused ones are added), as decoders require.
///
/// | limit  |                                                                       |
/// |--------|-----------------------------------------------------------------------|
/// | counts | 2 <= counts.size() <= 288, counts.size() == lengths.size() <= 2^limit |
/// | limit  | at most 15                                                            |
void code_lengths(std::span<const std::uint32_t> counts, int limit,
                  std::span<std::uint8_t> lengths);

/// Canonical codes of RFC 1951 section 3.2.2, bits reversed to the order of the stream.
void canonical_codes(std::span<const std::uint8_t> lengths, std::span<std::uint16_t> codes);

}  // namespace cutout::png
