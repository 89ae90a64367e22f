#pragma once

#include <cstdint>
#include <span>

namespace cutout::png {

/// Lengths of an optimal prefix code for `counts` with none above `limit`; 0 where a symbol is
/// never used. The code is always complete and has at least two symbols (unused ones fill up),
/// which every inflate accepts. Needs 2 <= counts.size() <= 288, lengths.size() == counts.size(),
/// limit <= 15, counts.size() <= 2^limit.
void code_lengths(std::span<const std::uint32_t> counts, int limit,
                  std::span<std::uint8_t> lengths);

/// Canonical codes of RFC 1951 section 3.2.2, their bits already in the order of the stream
/// (reversed).
void canonical_codes(std::span<const std::uint8_t> lengths, std::span<std::uint16_t> codes);

}  // namespace cutout::png
