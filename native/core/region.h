#pragma once

#include <cstddef>
#include <map>
#include <memory>

namespace cutout {

/// A range of address space that is allocated in blocks, first fit; freed neighbours are merged, so
/// that pages are reused by blocks of any size. Not thread-safe: LargeMemory locks.
///
/// | limit   |                                                                                 |
/// |---------|---------------------------------------------------------------------------------|
/// | sizes   | multiples of kPage                                                              |
/// | pages   | taken from the system when first written to; huge pages where the system has them |
class Region {
 public:
  static constexpr std::size_t kPage = 4096;

  /// Reserves `preferred` bytes, or less where the system does not allow that much, but at least
  /// `minimum`; null when that fails too. Throws std::bad_alloc when there is no memory for its own
  /// records.
  static std::unique_ptr<Region> reserve(std::size_t preferred, std::size_t minimum);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// A block with undefined content; null when no free range is long enough. Throws std::bad_alloc,
  /// without a change, when there is no memory for its own records.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Frees a block from allocate(). Does not allocate.
  void free(void* block) noexcept;
  /// Returns the pages of free blocks to the system; the addresses stay reserved.
  void release();

  [[nodiscard]] bool holds(const void* block) const;
  /// Whether no block is allocated.
  [[nodiscard]] bool idle() const;
  /// Upper bound of the free bytes that have pages.
  [[nodiscard]] std::size_t resident_bytes() const;

 private:
  struct Extent {
    std::size_t bytes;
    std::size_t used;  // bytes from the front that may have pages
  };

  Region(std::byte* base, std::size_t bytes);

  std::byte* const base_;
  const std::size_t bytes_;
  using Extents = std::map<std::byte*, Extent>;
  Extents free_;       // no two are adjacent
  Extents allocated_;  // nodes move between the two maps
};

}  // namespace cutout
