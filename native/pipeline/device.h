#pragma once

#include <cstddef>
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

/// Rows of bytes on the host, `stride` apart.
template <typename Byte>
struct BasicHostRows {
  Byte* data = nullptr;
  std::size_t count = 0;
  std::size_t bytes = 0;  // of a row
  std::ptrdiff_t stride = 0;

  /// Writable rows convert to read-only ones.
  operator BasicHostRows<const Byte>() const { return {data, count, bytes, stride}; }
};

using HostRows = BasicHostRows<std::byte>;
using ConstHostRows = BasicHostRows<const std::byte>;

struct DeviceStats {
  std::size_t used_bytes = 0;   // of memory that is in use
  std::size_t kept_bytes = 0;   // of memory that is kept for the next use
  std::size_t allocations = 0;  // so far, by the device
  std::size_t streams = 0;
};

/// A GPU by the functions of libcutout_cuda.so (cuda/table.h): its memory and its streams, both
/// kept for the next use. Errors have the codes of ort::gpu_failure().
///
/// | limit   |                                                                                          |
/// |---------|------------------------------------------------------------------------------------------|
/// | memory  | blocks at most a quarter larger than asked for, counted against the budget; when that or |
/// |         | the device has none left, what is kept is released and both are asked once more; then    |
/// |         | kDeviceMemory                                                                            |
/// | streams | one for each call that runs at the same time, each with page-locked memory of            |
/// |         | 2.25 * staging bytes, of which staging are at least 256                                  |
/// | lifetime| outlives its memory and its calls                                                        |
class Device final : public DeviceMemory {
 public:
  static constexpr std::size_t kStaging = 4U << 20U;

  /// Memory is counted against the budget; without one it is not counted.
  explicit Device(const cuda::Table& table, int number, std::size_t staging = kStaging,
                  std::shared_ptr<ort::DeviceMemoryBudget> budget = nullptr)
      : table_(table), number_(number), staging_(staging), budget_(std::move(budget)) {}
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Status allocate(std::size_t bytes, std::shared_ptr<void>& memory) override;
  Status clear(void* memory, std::size_t bytes) override;
  Status copy(std::span<const DeviceCopy> copies) override;

  [[nodiscard]] const cuda::Table& table() const { return table_; }
  /// Destroys a graph that cuda::NetworkTable::end_graph made on the device.
  void destroy_graph(void* graph) noexcept;
  /// Returns the memory that is kept to the device.
  void release_kept() noexcept;
  [[nodiscard]] DeviceStats stats() const;

 private:
  friend class DeviceCall;

  struct Stream {
    void* handle = nullptr;
    std::byte* staging = nullptr;  // two halves, then parameters
  };

  [[nodiscard]] Status failure(int error) const;
  Status acquire_stream(Stream& stream);
  Status open_stream(Stream& stream);
  void close_stream(const Stream& stream) noexcept;
  void release_stream(const Stream& stream) noexcept;
  void give_back(void* block, std::size_t bytes) noexcept;
  void* take_kept(std::size_t bytes);
  /// A new block from the device.
  Status take_new(std::size_t bytes, void** block);
  void release(void* block, std::size_t bytes) noexcept;

  const cuda::Table& table_;
  const int number_;
  const std::size_t staging_;
  const std::shared_ptr<ort::DeviceMemoryBudget> budget_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> kept_;  // by size; these four are guarded by mutex_
  std::vector<Stream> idle_streams_;
  std::size_t open_streams_ = 0;
  DeviceStats stats_;
};

/// Work on a stream of a device, from the constructor to finish(). After the first error nothing is
/// queued any longer, and pointers to memory are null. What the work reads on the host has to exist
/// until finish() returns. The destructor waits for work that was not finished.
class DeviceCall {
 public:
  explicit DeviceCall(Device& device);
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  /// Memory that others keep after the call.
  template <typename T>
  T* allocate(std::size_t count, std::shared_ptr<void>& memory) {
    if (status_.ok()) status_ = device_.allocate(count * sizeof(T), memory);
    return status_.ok() ? static_cast<T*>(memory.get()) : nullptr;
  }
  /// Memory of this call.
  template <typename T>
  T* scratch(std::size_t count) {
    return allocate<T>(count, scratch_.emplace_back());
  }
  /// The values on the device; those that are given one after the other are copied together.
  template <typename T>
  const T* constant(const std::vector<T>& values) {
    return static_cast<const T*>(
        add_parameter(values.data(), values.size() * sizeof(T), alignof(T)));
  }
  /// One value of the device, which can be read on the host when finish() has returned; null after
  /// an error.
  template <typename T>
  const T* fetch(const T* value) {
    static_assert(sizeof(T) <= kFetched);
    run<&cuda::Table::copy_to_host>(on_host(), value, sizeof(T));
    return reinterpret_cast<const T*>(on_host());
  }
  void clear(void* memory, std::size_t bytes) { run<&cuda::Table::clear>(memory, bytes); }

  /// Both copy through page-locked memory, to rows without padding on the device and back; the pool
  /// copies there. The host's rows can be used again, or read, when they return.
  void upload(const ConstHostRows& rows, void* memory, ThreadPool& pool);
  /// `begun` becomes true before the rows are changed.
  void download(const void* memory, const HostRows& rows, ThreadPool& pool, bool* begun = nullptr);

  /// Queues a function of the table or of its part for networks; the stream is its last argument.
  template <auto kFunction, typename... Arguments>
  void run(Arguments... arguments) {
    copy_parameters();
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
    if (has_stream_) note(call(kFunction, arguments...));
  }

  /// Waits for the work; the first error of the call.
  Status finish();

 private:
  static constexpr std::size_t kFetched = 64;  // bytes

  void note(int error);
  /// Page-locked memory of one fetched value and the parameters.
  [[nodiscard]] std::byte* on_host() const {
    return has_stream_ ? stream_.staging + 2 * device_.staging_ : nullptr;
  }
  const void* add_parameter(const void* value, std::size_t bytes, std::size_t alignment);
  /// Queues the copy of those that were added since the last time.
  void copy_parameters();
  template <typename Function, typename... Arguments>
  int call(Function cuda::Table::*function, Arguments... arguments) {
    return (device_.table_.*function)(arguments..., stream_.handle);
  }
  template <typename Function, typename... Arguments>
  int call(Function cuda::NetworkTable::*function, Arguments... arguments) {
    return (device_.table_.network.*function)(arguments..., stream_.handle);
  }

  Device& device_;
  Device::Stream stream_;
  bool has_stream_ = false;
  bool queued_ = false;
  Status status_;
  std::byte* parameters_ = nullptr;          // on the device
  std::size_t parameters_added_ = kFetched;  // bytes
  std::size_t parameters_copied_ = kFetched;
  std::vector<std::shared_ptr<void>> scratch_;
};

}  // namespace cutout
