#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/status.h"

namespace cutout {

struct DeviceCopy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

/// Memory of a device for tensors that several parts of a job work on. Every function may be called
/// from any thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// `bytes` with undefined content, aligned to 64; released before this object is destroyed.
  /// kDeviceMemory or kDevice without them.
  virtual Status allocate(std::size_t bytes, std::shared_ptr<void>& memory) = 0;
  /// Sets bytes to 0, and copies them from places on the device to others. Both return when that is
  /// done.
  virtual Status clear(void* memory, std::size_t bytes) = 0;
  virtual Status copy(std::span<const DeviceCopy> copies) = 0;
};

}  // namespace cutout
