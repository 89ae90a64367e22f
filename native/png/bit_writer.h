#pragma once

#include <cstdint>
#include <cstring>

namespace cutout::png {

/// Writes the bits of a deflate stream, least significant first, to memory of the caller, who
/// provides enough: a flush writes up to 8 bytes behind `position()`.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out) : out_(out) {}

  /// Appends `count` bits, at most 56 between two calls of flush(); bits of `value` above `count`
  /// must be 0.
  void put(std::uint64_t value, unsigned count) {
    held_ |= value << bits_;
    bits_ += count;
  }

  void flush() {
    for (unsigned i = 0; i < 8; ++i) out_[i] = static_cast<std::uint8_t>(held_ >> (8 * i));
    out_ += bits_ >> 3;
    held_ >>= bits_ & 56u;
    bits_ &= 7u;
  }

  /// Pads with zero bits to the next byte boundary and flushes.
  void align() {
    bits_ = (bits_ + 7u) & ~7u;
    flush();
  }

  /// Copies whole bytes; only after align().
  void bytes(const std::uint8_t* from, std::size_t count) {
    if (count != 0) std::memcpy(out_, from, count);
    out_ += count;
  }

  /// The first byte that is not completely written.
  [[nodiscard]] std::uint8_t* position() const { return out_; }
  /// Bits held back after flush(), 0..7.
  [[nodiscard]] unsigned pending() const { return bits_; }

  /// Bits written since this writer was at `begin`.
  [[nodiscard]] std::uint64_t bits_since(const BitWriter& begin) const {
    return static_cast<std::uint64_t>(out_ - begin.out_) * 8 + bits_ - begin.bits_;
  }

 private:
  std::uint8_t* out_;
  std::uint64_t held_ = 0;
  unsigned bits_ = 0;
};

}  // namespace cutout::png
