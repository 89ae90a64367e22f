#include "core/large_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <new>
#include <utility>

namespace cutout {

std::unique_ptr<Region> Region::reserve(std::size_t preferred, std::size_t minimum) {
  for (std::size_t bytes = std::max(preferred, minimum);; bytes = std::max(bytes / 2, minimum)) {
    // Address space only: no memory is used before a page is written to.
    void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) {
#ifdef MADV_HUGEPAGE
      // Fewer page faults and TLB misses; without huge pages the call has no effect.
      static_cast<void>(madvise(base, bytes, MADV_HUGEPAGE));
#endif
      try {
        return std::unique_ptr<Region>(new Region(static_cast<std::byte*>(base), bytes));
      } catch (...) {
        munmap(base, bytes);
        throw;
      }
    }
    if (bytes <= minimum) return nullptr;
  }
}

Region::Region(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {
  free_.emplace(base, Extent{bytes, 0});
}

Region::~Region() { munmap(base_, bytes_); }

void* Region::allocate(std::size_t bytes) {
  const auto found = std::ranges::find_if(
      free_, [bytes](const auto& entry) { return entry.second.bytes >= bytes; });
  if (found == free_.end()) return nullptr;
  const auto [block, extent] = *found;
  const std::size_t rest = extent.bytes - bytes;
  if (rest > 0) {
    free_.emplace(block + bytes, Extent{rest, extent.used - std::min(extent.used, bytes)});
  }
  Extents::node_type entry = free_.extract(found);
  entry.mapped() = {bytes, bytes};
  allocated_.insert(std::move(entry));
  return block;
}

void Region::free(void* block) noexcept {
  Extents::node_type entry = allocated_.extract(static_cast<std::byte*>(block));
  std::byte* const begin = entry.key();
  Extent& whole = entry.mapped();
  const auto next = free_.upper_bound(begin);
  if (next != free_.end() && next->first == begin + whole.bytes) {
    if (next->second.used > 0) whole.used = whole.bytes + next->second.used;
    whole.bytes += next->second.bytes;
  }
  const bool joins_next = next != free_.end() && next->first < begin + whole.bytes;
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second.bytes == begin) {
      previous->second.used = previous->second.bytes + whole.used;
      previous->second.bytes += whole.bytes;
      if (joins_next) free_.erase(next);
      return;
    }
  }
  if (joins_next) free_.erase(next);
  free_.insert(std::move(entry));
}

void Region::release() {
  for (auto& [begin, extent] : free_) {
    if (extent.used == 0) continue;
    static_cast<void>(madvise(begin, extent.used, MADV_DONTNEED));
    extent.used = 0;
  }
}

bool Region::holds(const void* block) const {
  const auto* const at = static_cast<const std::byte*>(block);
  return at >= base_ && at < base_ + bytes_;
}

bool Region::idle() const { return free_.size() == 1 && free_.begin()->second.bytes == bytes_; }

std::size_t Region::resident_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [begin, extent] : free_) bytes += extent.used;
  return bytes;
}

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
