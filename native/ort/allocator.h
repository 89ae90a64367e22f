#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "ort/region.h"

namespace cutout::ort {

/// Memory of the networks on the CPU, in place of ONNX Runtime's arena: large blocks have their
/// exact size instead of a power of two, use huge pages where the system has them, reuse each
/// other's pages, and are returned to the system by release_cached(). See docs/decisions/0011 and
/// 0080.
///
/// | size        | source                                                                         |
/// |-------------|--------------------------------------------------------------------------------|
/// | < 256 KiB   | the C++ heap                                                                   |
/// | others      | a Region; another region only where the first ones have no room                |
///
/// Every function may be called from any thread.
class NetworkMemory {
 public:
  static constexpr std::size_t kAlignment = 64;

  NetworkMemory() = default;
  ~NetworkMemory() { release_cached(); }
  NetworkMemory(const NetworkMemory&) = delete;
  NetworkMemory& operator=(const NetworkMemory&) = delete;

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

/// The instance that ONNX Runtime uses in this process. Never destroyed, like its environment.
NetworkMemory& network_memory();

}  // namespace cutout::ort
