#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

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

/// Memory of large blocks that come and go with every job: those of the networks on the CPU, in
/// place of ONNX Runtime's arena, and the planes of refinement. Blocks have their exact size
/// instead of a power of two, use huge pages where the system has them, reuse each other's pages,
/// and are returned to the system by release_cached(). See decision 0011 and 0080.
///
/// | size        | source                                                                         |
/// |-------------|--------------------------------------------------------------------------------|
/// | < 256 KiB   | the C++ heap                                                                   |
/// | others      | a Region; another region only where the first ones have no room                |
///
/// Every function may be called from any thread.
class LargeMemory {
 public:
  static constexpr std::size_t kAlignment = 64;

  LargeMemory() = default;
  ~LargeMemory() { release_cached(); }
  LargeMemory(const LargeMemory&) = delete;
  LargeMemory& operator=(const LargeMemory&) = delete;

  /// `bytes` aligned to kAlignment, content undefined; null when there is no memory.
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
  /// Frees a block from allocate(); null has no effect. Does not allocate.
  void free(void* pointer) noexcept;
  /// Returns all pages that are not in use to the system.
  void release_cached();

  /// Upper bound of the bytes that are not in use and not returned.
  [[nodiscard]] std::size_t cached_bytes() const;

 private:
  [[nodiscard]] void* allocate_pages(std::size_t bytes);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Region>> regions_;  // and their content: guarded by mutex_
};

/// The instance of this process. Never destroyed, like ONNX Runtime's environment, which uses it.
LargeMemory& large_memory();

/// Likewise, for the tensors that jobs borrow from their beginning to their end: among the blocks
/// of a run, which come and go meanwhile, they would leave holes that no block fits in.
LargeMemory& tensor_memory();

/// `bytes` of tensor_memory(), content undefined, freed with the last owner. Throws std::bad_alloc.
/// With AddressSanitizer on the heap, where it watches their ends.
[[nodiscard]] std::shared_ptr<void> allocate_tensor_memory(std::size_t bytes);

struct LargeArrayDeleter {
  void operator()(void* array) const noexcept;
};

/// Numbers in large_memory(). With AddressSanitizer on the heap, where it watches their ends.
template <typename T>
using LargeArray = std::unique_ptr<T[], LargeArrayDeleter>;

/// The memory of a LargeArray, aligned for any number; throws std::bad_alloc.
[[nodiscard]] void* allocate_large_array(std::size_t bytes);

/// `count` numbers with undefined values. Throws std::bad_alloc.
template <typename T>
  requires std::is_arithmetic_v<T>
[[nodiscard]] LargeArray<T> make_large_array(std::size_t count) {
  return LargeArray<T>(static_cast<T*>(allocate_large_array(count * sizeof(T))));
}

}  // namespace cutout
