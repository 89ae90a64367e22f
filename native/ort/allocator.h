#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "ort/region.h"

namespace cutout::ort {

/// Memory of the networks on the CPU: what ONNX Runtime's own arena does, but large blocks are
/// exact instead of powers of two, lie on huge pages where the system has them, use pages again
/// that any block before them had, and go back to the system when nobody needs them
/// (release_cached). See docs/decisions/0011 and 0080.
///
/// | size        | where from                                                                     |
/// |-------------|--------------------------------------------------------------------------------|
/// | < 256 KiB   | the C++ heap                                                                   |
/// | others      | pieces of a Region; a second region only where the first has no room           |
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
  /// Takes back what allocate() gave; null is nothing. Needs no memory.
  void free(void* pointer) noexcept;
  /// Returns every page that is not in use to the system.
  void release_cached();

  /// Not in use and not returned: at most these.
  [[nodiscard]] std::size_t cached_bytes() const;

 private:
  [[nodiscard]] void* take_pages(std::size_t bytes);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Region>> regions_;  // guarded by mutex_, as what they hold
};

/// The one ONNX Runtime uses in this process. Never destroyed, as its environment.
NetworkMemory& network_memory();

}  // namespace cutout::ort
