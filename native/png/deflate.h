#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "png/block.h"

namespace cutout::png {

inline constexpr int kMinEffort = 1;
inline constexpr int kMaxEffort = 9;

/// Layout of the bytes: rows of `row` bytes, the first of them a filter type, then pixels of
/// `pixel` bytes; {0, 1} for bytes without rows. A hint for the search, without influence on
/// correctness.
struct RowLayout {
  std::size_t row = 0;
  std::size_t pixel = 1;
};

/// Upper bound of the bytes that compress() appends for `size` bytes: stored blocks, all but the
/// last of at least 16384 bytes, and the flush at the end.
[[nodiscard]] constexpr std::size_t deflate_bound(std::size_t size) {
  return size + 6 * (size / 16384 + 2) + 8;
}

/// Deflate encoder (RFC 1951). Keeps its memory from call to call; the output of a call depends on
/// its arguments only.
///
/// | effort | search                                                                        |
/// |--------|-------------------------------------------------------------------------------|
/// | 1      | runs of one byte or one pixel, most of the short ones and all of 23 bytes of  |
/// |        | pixels of four; codes from a sample of the literals, of large inputs          |
/// | 2..4   | and the latest equal eight bytes at a pixel; after many misses pixels are     |
/// |        | skipped, fewer with more effort                                               |
/// | 5..9   | hash chains at every byte, deeper with more effort, and lazy evaluation       |
///
/// A match is used where it costs fewer bits than its literals, by the codes of the block before.
/// With effort 1 every run is used and the input is one block.
/// Not thread-safe; one object a thread.
class Deflater {
 public:
  /// Appends `in` as whole blocks that do not refer to earlier input. Ends the stream when `last`,
  /// else ends at a byte boundary with an empty stored block, so that the output of another call
  /// may follow. Throws std::bad_alloc only.
  void compress(std::span<const std::uint8_t> in, RowLayout layout, int effort, bool last,
                std::vector<std::uint8_t>& out);

 private:
  struct Found {
    std::size_t length = 0;
    std::size_t distance = 0;
    int gain = 0;  // bits saved against literals
  };

  void parse_runs();
  void parse_pixels();
  void parse_chains();
  Found search(std::size_t at);
  void insert(std::size_t at);
  [[nodiscard]] std::size_t extent(std::size_t at, std::size_t distance, std::size_t known,
                                   std::size_t most) const;
  [[nodiscard]] std::size_t begin_of(std::size_t at, std::size_t distance) const;
  [[nodiscard]] std::size_t run_distance(std::size_t at) const;
  void literal_bits_until(std::size_t at, std::size_t length);
  void add_match(std::size_t at, std::size_t length, std::size_t distance);
  void end_block(std::size_t end, bool last);

  // Hash → latest position + 1 with it, 0: none; of eight and of four bytes.
  std::vector<std::uint32_t> latest_pair_;
  std::vector<std::uint32_t> head_;
  std::vector<std::uint32_t>
      previous_;  // position in the window → the one before it with that hash
  std::vector<Sequence> sequences_;
  std::vector<std::uint8_t> buffer_;

  // State of the current call.
  std::span<const std::uint8_t> in_;
  RowLayout layout_;
  int effort_ = kMinEffort;
  bool sampled_ = false;
  BitCosts costs_{};
  BitWriter writer_{nullptr};
  std::size_t block_begin_ = 0;
  std::size_t literal_begin_ = 0;  // first byte no sequence covers yet
  std::size_t tokens_ = 0;
  std::array<std::uint32_t, kMaxMatch + 1>
      literal_sum_{};  // of the bytes from the position searched
  std::size_t literal_sum_size_ = 0;
};

}  // namespace cutout::png
