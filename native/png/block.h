#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "png/bit_writer.h"

namespace cutout::png {

inline constexpr std::size_t kMinMatch = 3;
inline constexpr std::size_t kMaxMatch = 258;
inline constexpr std::size_t kWindow = 32768;

/// `literals` bytes as they are, then `length` bytes (3..258) from `distance` bytes back
/// (1..32768). Length 0: no match follows (only the last sequence of a block).
struct Sequence {
  std::uint32_t literals;
  std::uint16_t length;
  std::uint16_t distance;
};

/// Cost in bits of a byte, a match length and a distance symbol, extra bits included.
struct BitCosts {
  std::array<std::uint8_t, 256> literal;
  std::array<std::uint8_t, kMaxMatch + 1> length;
  std::array<std::uint8_t, 30> distance;
};

/// Symbol of a distance, 0..29 (RFC 1951 section 3.2.5).
inline std::uint32_t distance_symbol(std::uint32_t distance) {
  const std::uint32_t d = distance - 1;
  if (d < 4) return d;
  const auto top = static_cast<std::uint32_t>(31 - __builtin_clz(d));
  return 2 * top + ((d >> (top - 1)) & 1u);
}

/// Costs for the first block, estimated from a sample of its bytes.
[[nodiscard]] BitCosts guess_costs(std::span<const std::uint8_t> bytes);

/// Minimum bytes of a block whose literals are sampled, and the bytes that it may write behind
/// `out` as a multiple of them.
inline constexpr std::size_t kSampledBlock = 32768;
inline constexpr std::size_t kSampledGrowth = 2;

/// Writes one block of a deflate stream in the shortest of the three forms (dynamic, fixed, stored;
/// RFC 1951 section 3.2.3). `sequences` describe `bytes` completely and in order; matches may refer
/// to bytes before `bytes`. `costs` is set to the costs of this block's symbols. With `sampled` the
/// code is made from a sample of the literals, and the form is the shortest by that estimate,
/// but never longer than the stored one.
void write_block(std::span<const std::uint8_t> bytes, std::span<const Sequence> sequences,
                 bool sampled, bool last, BitWriter& out, BitCosts& costs);

}  // namespace cutout::png
