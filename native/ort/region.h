#pragma once

#include <cstddef>
#include <map>
#include <memory>

namespace cutout::ort {

/// A range of address space that is allocated in blocks, first fit; freed neighbours are merged, so
/// that pages are reused by blocks of any size. Not thread-safe: NetworkMemory locks.
///
/// | limit   |                                                                                 |
/// |---------|---------------------------------------------------------------------------------|
/// | sizes   | multiples of kPage                                                              |
/// | pages   | taken from the system when first written to; huge pages where the system has them |
class Region {
 public:
  static constexpr std::size_t kPage = 4096;

  /// Reserves `wish` bytes, or less where the system does not allow that much, but at least
  /// `least`; null when that fails too. Throws std::bad_alloc when there is no memory for its own
  /// records.
  static std::unique_ptr<Region> reserve(std::size_t wish, std::size_t least);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// A block with undefined content; null when no free range is long enough. Throws std::bad_alloc,
  /// without a change, when there is no memory for its own records.
  [[nodiscard]] void* take(std::size_t bytes);
  /// Frees a block from take(). Does not allocate.
  void give(void* piece) noexcept;
  /// Returns the pages of free blocks to the system; the addresses stay reserved.
  void release();

  [[nodiscard]] bool holds(const void* piece) const;
  /// Whether no block is taken.
  [[nodiscard]] bool idle() const;
  /// Upper bound of the free bytes that have pages.
  [[nodiscard]] std::size_t resident_bytes() const;

 private:
  struct Stretch {
    std::size_t bytes;
    std::size_t used;  // bytes from the front that may have pages
  };

  Region(std::byte* base, std::size_t bytes);

  std::byte* const base_;
  const std::size_t bytes_;
  using Stretches = std::map<std::byte*, Stretch>;
  Stretches free_;   // no two are adjacent
  Stretches taken_;  // nodes move between the two maps
};

}  // namespace cutout::ort
