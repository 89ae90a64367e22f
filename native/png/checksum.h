#pragma once

#include <cstdint>
#include <span>

namespace cutout::png {

// Both continue from the value of the preceding bytes; `crc32` starts with 0, `adler32` with 1.
// They take any length, are reentrant and bit-equal to the scalar versions.

/// CRC of PNG chunks (ISO 3309, polynomial 0xEDB88320). PNG specification, annex D.
[[nodiscard]] std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t crc);

/// Check value of a zlib stream, RFC 1950 section 8.2.
[[nodiscard]] std::uint32_t adler32(std::span<const std::uint8_t> bytes, std::uint32_t adler);

/// adler32 of the concatenation of two runs, from the values of both (each started with 1) and the
/// number of bytes of the second.
[[nodiscard]] std::uint32_t adler32_combine(std::uint32_t first, std::uint32_t second,
                                            std::uint64_t second_size);

}  // namespace cutout::png
