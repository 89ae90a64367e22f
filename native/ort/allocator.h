#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace cutout::ort {

/// Memory of the networks on the CPU: what ONNX Runtime's own arena does, but large blocks are
/// exact instead of powers of two, lie on huge pages where the system has them, and go back to the
/// system when nobody needs them (release_cached). See docs/decisions/0011.
///
/// | size        | where from                                                                     |
/// |-------------|--------------------------------------------------------------------------------|
/// | < 256 KiB   | the C++ heap                                                                   |
/// | others      | own mappings; a freed one is kept for a request of at least 3/4 of its size    |
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
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Takes back what allocate() gave; null is nothing.
  void free(void* pointer);
  /// Returns every mapping that is not in use to the system.
  void release_cached();

  [[nodiscard]] std::size_t cached_bytes() const;

 private:
  struct Block {
    void* base;
    std::size_t bytes;
  };
  static void unmap(const std::vector<Block>& blocks);

  mutable std::mutex mutex_;
  std::vector<Block> cached_;  // guarded by mutex_
};

/// The one ONNX Runtime uses in this process. Never destroyed, as its environment.
NetworkMemory& network_memory();

}  // namespace cutout::ort
