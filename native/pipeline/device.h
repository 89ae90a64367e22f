#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/device_memory.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "cuda/table.h"
#include "ort/device_memory_budget.h"

namespace cutout {

struct DeviceStats {
  std::size_t used_bytes = 0;   // of memory that is in use
  std::size_t kept_bytes = 0;   // of memory that is kept for the next use
  std::size_t allocations = 0;  // so far, by the device
  std::size_t streams = 0;
};

/// A GPU by the functions of libcutout_cuda.so (cuda/table.h): its memory, page-locked memory of
/// the host and its streams, all kept for the next use. Errors have the codes of
/// ort::gpu_failure().
///
/// | limit   |                                                                                          |
/// |---------|------------------------------------------------------------------------------------------|
/// | memory  | blocks at most a quarter larger than asked for, those of the device counted against the  |
/// |         | budget; when that, the device or the host has none left, what is kept is released and    |
/// |         | all are asked once more; then kDeviceMemory or kOutOfMemory                              |
/// | streams | one for each call that runs at the same time                                             |
/// | lifetime| outlives its memory and its calls                                                        |
class Device final : public DeviceMemory {
 public:
  /// Room for the taps and constants of an image, in bytes.
  static constexpr std::size_t kForConstants = 1U << 20U;

  /// Memory is counted against the budget; without one it is not counted.
  explicit Device(const cuda::Table& table, int number,
                  std::shared_ptr<ort::DeviceMemoryBudget> budget = nullptr,
                  std::size_t for_constants = kForConstants)
      : table_(table), number_(number), budget_(std::move(budget)), for_constants_(for_constants) {}
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Status allocate(std::size_t bytes, std::shared_ptr<void>& memory) override {
    return allocate(kOnDevice, bytes, memory);
  }
  Status clear(void* memory, std::size_t bytes) override;
  Status copy(std::span<const DeviceCopy> copies) override;

  [[nodiscard]] const cuda::Table& table() const { return table_; }
  /// Destroys a graph that cuda::NetworkTable::end_graph made on the device.
  void destroy_graph(void* graph) noexcept;
  /// Returns the memory that is kept to the device and the host.
  void release_kept() noexcept;
  [[nodiscard]] DeviceStats stats() const;

 private:
  friend class DeviceCall;

  enum Kind { kOnDevice, kPageLocked };

  [[nodiscard]] Status failure(int error) const;
  Status allocate(Kind kind, std::size_t bytes, std::shared_ptr<void>& memory);
  Status acquire_stream(void*& stream);
  void release_stream(void* stream) noexcept;
  void give_back(Kind kind, void* block, std::size_t bytes) noexcept;
  void* take_kept(Kind kind, std::size_t bytes);
  /// A new block from the device or the host.
  Status take_new(Kind kind, std::size_t bytes, void** block);
  void release(Kind kind, void* block, std::size_t bytes) noexcept;

  const cuda::Table& table_;
  const int number_;
  const std::shared_ptr<ort::DeviceMemoryBudget> budget_;
  const std::size_t for_constants_;
  mutable std::mutex mutex_;
  std::array<std::map<std::size_t, std::vector<void*>>, 2> kept_;  // by kind and size; these four
  std::vector<void*> idle_streams_;                                // are guarded by mutex_
  std::size_t open_streams_ = 0;
  DeviceStats stats_;
};

/// Memory of a device and as much of the host, page-locked, between which copies go.
struct Mirrored {
  std::byte* host = nullptr;
  std::byte* device = nullptr;
};

/// Work on a stream of a device, one operation after the other, from the constructor to the last
/// finish(); of one thread at a time. After the first error nothing is queued any longer, and
/// pointers to memory are null. The destructor waits for work that was not waited for; until then
/// no other call uses memory of this one, even where others hold it too.
class DeviceCall {
 public:
  explicit DeviceCall(Device& device);
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  /// Memory that others may keep after the call.
  template <typename T>
  T* allocate(std::size_t count, std::shared_ptr<void>& memory) {
    if (status_.ok()) status_ = device_.allocate(count * sizeof(T), memory);
    if (!status_.ok()) return nullptr;
    held_.push_back(memory);
    return static_cast<T*>(memory.get());
  }
  /// Memory of this call, until end_step().
  template <typename T>
  T* scratch(std::size_t count) {
    return static_cast<T*>(take_scratch(count * sizeof(T)));
  }
  /// What was scratch so far is scratch for the work that is queued from now on.
  void end_step() { scratch_used_ = 0; }

  /// Memory until the end of the call. What is written to the host's goes to the device before the
  /// next work; what is added one after the other, together.
  Mirrored mirrored(std::size_t bytes);
  /// Page-locked memory of the host until the end of the call; null after an error.
  std::byte* on_host(std::size_t bytes) {
    std::shared_ptr<void> memory;
    if (status_.ok()) status_ = device_.allocate(Device::kPageLocked, bytes, memory);
    if (!status_.ok()) return nullptr;
    held_.push_back(memory);
    return static_cast<std::byte*>(memory.get());
  }
  /// The values on the device.
  template <typename T>
  const T* constant(std::span<const T> values) {
    const Mirrored memory = mirrored(values.size_bytes());
    if (memory.host != nullptr) std::memcpy(memory.host, values.data(), values.size_bytes());
    return reinterpret_cast<const T*>(memory.device);
  }
  template <typename T>
  const T* constant(const std::vector<T>& values) {
    return constant(std::span<const T>(values));
  }
  void clear(void* memory, std::size_t bytes) { run<&cuda::Table::clear>(memory, bytes); }

  /// Queues a function of the table or of its part for networks; the stream is its last argument.
  template <auto kFunction, typename... Arguments>
  void run(Arguments... arguments) {
    copy_mirrored();
    if (!status_.ok()) return;
    queued_ = true;
    note(call(kFunction, arguments...));
  }

  /// Does what run() does, but returns false for the `expected` error, which does not fail the
  /// call.
  template <auto kFunction, typename... Arguments>
  bool try_run(int expected, Arguments... arguments) {
    if (!status_.ok()) return false;
    const int error = call(kFunction, arguments...);
    if (error == expected) return false;
    queued_ = true;
    note(error);
    return status_.ok();
  }

  /// Does what run() does, for what ends what an earlier function began: also after an error.
  template <auto kFunction, typename... Arguments>
  void end(Arguments... arguments) {
    if (stream_ != nullptr) note(call(kFunction, arguments...));
  }

  /// The first error of the call.
  [[nodiscard]] const Status& status() const { return status_; }
  /// Waits for the work, and returns the same.
  Status finish();

 private:
  void note(int error);
  void* take_scratch(std::size_t bytes);
  /// Queues the copy of what was added since the last time.
  void copy_mirrored();
  template <typename Function, typename... Arguments>
  int call(Function cuda::Table::*function, Arguments... arguments) {
    return (device_.table_.*function)(arguments..., stream_);
  }
  template <typename Function, typename... Arguments>
  int call(Function cuda::NetworkTable::*function, Arguments... arguments) {
    return (device_.table_.network.*function)(arguments..., stream_);
  }

  struct Scratch {
    std::shared_ptr<void> memory;
    std::size_t bytes = 0;
  };

  Device& device_;
  void* stream_ = nullptr;
  bool queued_ = false;
  Status status_;
  Mirrored mirror_;  // the last one
  std::size_t mirror_bytes_ = 0;
  std::size_t mirror_used_ = 0;
  std::size_t mirror_copied_ = 0;
  std::vector<Scratch> scratch_;  // the first scratch_used_ are in use
  std::size_t scratch_used_ = 0;
  std::vector<std::shared_ptr<void>> held_;  // until the end of the call
};

}  // namespace cutout
