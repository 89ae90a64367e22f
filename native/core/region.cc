#include "core/region.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
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

}  // namespace cutout
