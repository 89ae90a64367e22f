#include "png/checksum.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "core/simd.h"

#ifdef CUTOUT_CLONES
#include <immintrin.h>
#endif

namespace cutout::png {

namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320u;
constexpr std::size_t kSlices = 16;
using Slices = std::array<std::array<std::uint32_t, 256>, kSlices>;

/// slices[k][b]: contribution to the register of byte b followed by k zero bytes.
constexpr Slices make_slices() {
  Slices slices{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    slices[0][byte] = crc;
  }
  for (std::size_t k = 1; k < kSlices; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = slices[k - 1][byte];
      slices[k][byte] = (before >> 8) ^ slices[0][before & 0xFFu];
    }
  }
  return slices;
}

constexpr Slices kSlice = make_slices();

/// The register after `bytes`.
std::uint32_t sliced(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  const std::uint8_t* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kSlices; left -= kSlices, p += kSlices) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < kSlices; ++i) {
      const std::uint32_t folded = i < 4 ? (crc >> (8 * i)) & 0xFFu : 0u;
      next ^= kSlice[kSlices - 1 - i][p[i] ^ folded];
    }
    crc = next;
  }
  for (; left > 0; --left, ++p) crc = (crc >> 8) ^ kSlice[0][(crc ^ *p) & 0xFFu];
  return crc;
}

#ifdef CUTOUT_CLONES
/// Sixteen bytes that take a register of 0 to where `bytes` (a multiple of 16, not none) take
/// `crc`: 128 bits at a time, moved by a carry-less product (Gopal and others, 2009).
__attribute__((target("pclmul"))) std::array<std::uint8_t, 16> folded(
    std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  const auto* from = reinterpret_cast<const __m128i*>(bytes.data());
  const __m128i by = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
  __m128i held = _mm_xor_si128(_mm_loadu_si128(from), _mm_cvtsi32_si128(static_cast<int>(crc)));
  for (std::size_t i = 1; i < bytes.size() / 16; ++i) {
    const __m128i moved =
        _mm_xor_si128(_mm_clmulepi64_si128(held, by, 0x00), _mm_clmulepi64_si128(held, by, 0x11));
    held = _mm_xor_si128(moved, _mm_loadu_si128(from + i));
  }
  std::array<std::uint8_t, 16> result;
  std::memcpy(result.data(), &held, result.size());
  return result;
}
#endif

constexpr std::uint32_t kAdlerModulus = 65521;
constexpr std::size_t kLanes = 32;
/// A step of so many rows of lanes is summed in 16 bits a lane, ten steps (at most zlib's NMAX of
/// 5552 bytes) in 32 bits.
constexpr std::uint32_t kStepRows = 16;
constexpr std::size_t kAdlerStep = kStepRows * kLanes;
constexpr std::size_t kAdlerRun = 10 * kAdlerStep;

}  // namespace

std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  crc = ~crc;
#ifdef CUTOUT_CLONES
  if (bytes.size() >= 16 && __builtin_cpu_supports("pclmul")) {
    const auto whole = bytes.first(bytes.size() / 16 * 16);
    crc = sliced(folded(whole, crc), 0);
    bytes = bytes.subspan(whole.size());
  }
#endif
  return ~sliced(bytes, crc);
}

CUTOUT_SIMD std::uint32_t adler32(std::span<const std::uint8_t> bytes, std::uint32_t adler) {
  std::uint64_t a = adler & 0xFFFFu;
  std::uint64_t b = adler >> 16;
  const std::uint8_t* p = bytes.data();
  std::size_t left = bytes.size();
  while (left >= kAdlerStep) {
    const std::size_t run = std::min(left, kAdlerRun) / kAdlerStep * kAdlerStep;
    // Lane j sums the bytes j, j + 32, …; `before` sums the lane's values before each row of lanes.
    std::uint32_t sum[kLanes] = {};
    std::uint32_t before[kLanes] = {};
    for (std::size_t i = 0; i < run; i += kAdlerStep) {
      std::uint16_t step_sum[kLanes] = {};
      std::uint16_t step_before[kLanes] = {};
      for (std::size_t k = 0; k < kAdlerStep; k += kLanes) {
        for (std::size_t j = 0; j < kLanes; ++j) {
          step_before[j] = static_cast<std::uint16_t>(step_before[j] + step_sum[j]);
          step_sum[j] = static_cast<std::uint16_t>(step_sum[j] + p[i + k + j]);
        }
      }
      for (std::size_t j = 0; j < kLanes; ++j) {
        before[j] += step_before[j] + sum[j] * kStepRows;
        sum[j] += step_sum[j];
      }
    }
    b += a * run;
    for (std::size_t j = 0; j < kLanes; ++j) {
      a += sum[j];
      b += std::uint64_t{before[j]} * kLanes + std::uint64_t{sum[j]} * (kLanes - j);
    }
    a %= kAdlerModulus;
    b %= kAdlerModulus;
    p += run;
    left -= run;
  }
  for (; left > 0; --left, ++p) {
    a += *p;
    b += a;
  }
  return static_cast<std::uint32_t>((b % kAdlerModulus << 16) | a % kAdlerModulus);
}

std::uint32_t adler32_combine(std::uint32_t first, std::uint32_t second,
                              std::uint64_t second_size) {
  const std::uint64_t length = second_size % kAdlerModulus;
  const std::uint64_t a1 = first & 0xFFFFu;
  const std::uint64_t b1 = first >> 16;
  const std::uint64_t a2 = second & 0xFFFFu;
  const std::uint64_t b2 = second >> 16;
  // The second run started from a = 1 instead of a1: a1 - 1 is missing in each of its steps.
  const std::uint64_t missing = (a1 + kAdlerModulus - 1) % kAdlerModulus;
  const std::uint64_t a = (missing + a2) % kAdlerModulus;
  const std::uint64_t b = (b1 + b2 + length * missing) % kAdlerModulus;
  return static_cast<std::uint32_t>((b << 16) | a);
}

}  // namespace cutout::png
