#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/status.h"

namespace cutout::ort {

/// Bytes of a device that are in use, by any process, and how many it has.
struct DeviceUse {
  std::uint64_t used = 0;
  std::uint64_t total = 0;
};

/// Names of the CUDA runtime's library, the newest first.
inline constexpr std::array kCudaRuntimes{"libcudart.so.13", "libcudart.so.12",
                                          "libcudart.so.11.0"};

/// Asks the CUDA runtime that the provider has loaded; none without one. Makes a CUDA context.
std::optional<DeviceUse> device_use(int number,
                                    std::span<const char* const> libraries = kCudaRuntimes);

/// The memory that networks and jobs take on one device, against a limit. A session takes its
/// memory (weights, and what one run of its batch needs) when it is opened and run for the first
/// time, and keeps it, so that no later run needs more. What it takes is measured, as the growth of
/// the device's use without what is reserved by reserve() meanwhile; sessions of one device are
/// opened one after the other. Thread-safe.
class DeviceMemoryBudget {
 public:
  using Measure = std::function<std::optional<DeviceUse>()>;

  /// `limit` in bytes; 0: nine tenths of what the device has. What cannot be measured fits.
  DeviceMemoryBudget(std::uint64_t limit, Measure measure)
      : limit_(limit), measure_(std::move(measure)) {}

  /// What a session has taken; released when this is destroyed.
  class Reservation {
   public:
    Reservation() = default;
    ~Reservation() { release(); }
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept;
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

   private:
    friend class DeviceMemoryBudget;
    void release();
    std::shared_ptr<DeviceMemoryBudget> memory_;
    std::uint64_t bytes_ = 0;
  };

  /// Opens a session and reserves what it takes. kDeviceMemory when that is more than is left:
  /// before `open` if already `expected`, what it takes at least, is; else after it, and the caller
  /// closes what was opened. `what` begins the message. Without a budget it is only opened.
  static Status reserve_session(const std::shared_ptr<DeviceMemoryBudget>& memory,
                                const std::string& what, std::uint64_t expected,
                                const std::function<Status()>& open, Reservation& reservation);

  /// Reserves memory that is about to be allocated on the device by others than sessions. Returns
  /// false, and nothing is reserved, when that is more than is left.
  [[nodiscard]] bool reserve(std::uint64_t bytes);
  /// That memory was released.
  void release(std::uint64_t bytes);

  /// Bytes that sessions and reserve() have reserved.
  [[nodiscard]] std::uint64_t reserved() const;
  /// 0: not known yet.
  [[nodiscard]] std::uint64_t limit() const;
  [[nodiscard]] std::uint64_t left() const;

 private:
  mutable std::mutex mutex_;  // guards the next three
  std::uint64_t limit_;
  std::uint64_t sessions_ = 0;  // reserved by them
  std::uint64_t jobs_ = 0;      // reserved by the others
  const Measure measure_;
};

}  // namespace cutout::ort
