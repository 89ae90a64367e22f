#include "ort/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

namespace cutout::ort {

namespace {

constexpr std::size_t kMapped = 256 << 10;
constexpr std::size_t kPage = 4096;

/// In front of what allocate() returns, in a whole alignment unit.
struct Header {
  std::size_t mapped_bytes;  // 0: from the heap
};
static_assert(sizeof(Header) <= NetworkMemory::kAlignment);

void* behind_header(void* base, std::size_t mapped_bytes) {
  new (base) Header{mapped_bytes};
  return static_cast<std::byte*>(base) + NetworkMemory::kAlignment;
}

}  // namespace

void* NetworkMemory::allocate(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
  const std::size_t whole = bytes + kAlignment;
  if (whole < kMapped) {
    void* const base = ::operator new(whole, std::align_val_t{kAlignment}, std::nothrow);
    return base == nullptr ? nullptr : behind_header(base, 0);
  }
  const std::size_t pages = (whole + kPage - 1) / kPage * kPage;
  std::vector<Block> outgrown;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [pages](const Block& block) {
      return block.bytes >= pages && pages >= block.bytes / 4 * 3;
    };
    const auto found = std::ranges::find_if(cached_, fits);
    if (found != cached_.end()) {
      const Block block = *found;
      *found = cached_.back();
      cached_.pop_back();
      return behind_header(block.base, block.bytes);
    }
    // A run of the same network asks for the same sizes again: one that is not there means that
    // what is cached belongs to another time.
    outgrown.swap(cached_);
  }
  unmap(outgrown);
  void* const base =
      mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  // Fewer page faults and misses; where the system has no huge pages, nothing changes.
  static_cast<void>(madvise(base, pages, MADV_HUGEPAGE));
#endif
  return behind_header(base, pages);
}

void NetworkMemory::free(void* pointer) {
  if (pointer == nullptr) return;
  void* const base = static_cast<std::byte*>(pointer) - kAlignment;
  const std::size_t mapped_bytes = static_cast<Header*>(base)->mapped_bytes;
  if (mapped_bytes == 0) {
    ::operator delete(base, std::align_val_t{kAlignment});
    return;
  }
  const std::lock_guard lock(mutex_);
  cached_.push_back({base, mapped_bytes});
}

void NetworkMemory::release_cached() {
  std::vector<Block> released;
  {
    const std::lock_guard lock(mutex_);
    released.swap(cached_);
  }
  unmap(released);
}

std::size_t NetworkMemory::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const Block& block : cached_) bytes += block.bytes;
  return bytes;
}

void NetworkMemory::unmap(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) munmap(block.base, block.bytes);
}

NetworkMemory& network_memory() {
  static NetworkMemory* const instance = new NetworkMemory();
  return *instance;
}

}  // namespace cutout::ort
