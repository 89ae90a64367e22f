#include "core/large_memory.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace cutout {

namespace {

constexpr std::size_t kMapped = 256 << 10;
/// Address space of a region: far more than a network needs, so that one region is enough.
constexpr std::size_t kRegion = std::size_t{64} << 30;

/// Precedes each block, in a whole alignment unit.
struct Header {
  std::size_t mapped_bytes;  // 0: from the heap
};
static_assert(sizeof(Header) <= LargeMemory::kAlignment);

void* behind_header(void* base, std::size_t mapped_bytes) {
  new (base) Header{mapped_bytes};
  return static_cast<std::byte*>(base) + LargeMemory::kAlignment;
}

}  // namespace

void* LargeMemory::allocate(std::size_t bytes) noexcept {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
  const std::size_t whole = bytes + kAlignment;
  if (whole < kMapped) {
    void* const base = ::operator new(whole, std::align_val_t{kAlignment}, std::nothrow);
    return base == nullptr ? nullptr : behind_header(base, 0);
  }
  const std::size_t pages = (whole + Region::kPage - 1) / Region::kPage * Region::kPage;
  try {
    void* const base = allocate_pages(pages);
    return base == nullptr ? nullptr : behind_header(base, pages);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* LargeMemory::allocate_pages(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Region>& region : regions_) {
    if (void* const base = region->allocate(bytes)) return base;
  }
  std::unique_ptr<Region> region = Region::reserve(kRegion, bytes);
  if (region == nullptr) return nullptr;
  regions_.push_back(std::move(region));
  return regions_.back()->allocate(bytes);
}

void LargeMemory::free(void* pointer) noexcept {
  if (pointer == nullptr) return;
  void* const base = static_cast<std::byte*>(pointer) - kAlignment;
  const std::size_t mapped_bytes = static_cast<Header*>(base)->mapped_bytes;
  if (mapped_bytes == 0) {
    ::operator delete(base, std::align_val_t{kAlignment});
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto home =
      std::ranges::find_if(regions_, [base](const auto& region) { return region->holds(base); });
  (*home)->free(base);
}

void LargeMemory::release_cached() {
  const std::lock_guard lock(mutex_);
  std::erase_if(regions_, [](const auto& region) { return region->idle(); });
  for (const std::unique_ptr<Region>& region : regions_) region->release();
}

std::size_t LargeMemory::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const std::unique_ptr<Region>& region : regions_) bytes += region->resident_bytes();
  return bytes;
}

LargeMemory& large_memory() {
  static LargeMemory* const instance = new LargeMemory();
  return *instance;
}

LargeMemory& tensor_memory() {
  static LargeMemory* const instance = new LargeMemory();
  return *instance;
}

#ifdef __SANITIZE_ADDRESS__

std::shared_ptr<void> allocate_tensor_memory(std::size_t bytes) {
  return {::operator new(bytes), [](void* memory) { ::operator delete(memory); }};
}

void* allocate_large_array(std::size_t bytes) { return ::operator new(bytes); }

void LargeArrayDeleter::operator()(void* array) const noexcept { ::operator delete(array); }

#else

std::shared_ptr<void> allocate_tensor_memory(std::size_t bytes) {
  void* const memory = tensor_memory().allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, [](void* borrowed) { tensor_memory().free(borrowed); }};
}

void* allocate_large_array(std::size_t bytes) {
  void* const array = large_memory().allocate(bytes);
  if (array == nullptr) throw std::bad_alloc();
  return array;
}

void LargeArrayDeleter::operator()(void* array) const noexcept { large_memory().free(array); }

#endif

}  // namespace cutout
