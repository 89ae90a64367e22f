#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "cuda/table.h"
#include "pipeline/backend.h"
#include "pipeline/device.h"
#include "pipeline/matte.h"
#include "pipeline/replicas.h"

namespace cutout {

/// The kernels for a GPU of the library `file`. Null, with a line of the log that says so, where
/// there is no such file: the steps around the network then run on the CPU. kProvider for a file
/// that cannot be used.
Status open_gpu_kernels(const std::string& file, const cuda::Table*& kernels);

/// A matte to be made on any device. Everything is borrowed.
struct MatteRequest {
  ImageView pixels;
  const MattePlan& plan;
  Replicas& network;
  std::optional<std::reference_wrapper<Replicas>> second;
  std::optional<std::reference_wrapper<const SubjectClassifier>> classifier;
  int detector_slot = 0;  // MatteJob::detector_slot
};

/// The devices of an engine, the backend on which each runs the steps around the network, and the
/// jobs that each has.
/// Devices are numbered from 0, in the order of the engine's options. Thread-safe.
class DevicePool {
 public:
  /// With kernels, each of these devices runs the steps, in memory of its budget where
  /// budgets are given; without kernels, the CPU does for all of them.
  DevicePool(const cuda::Table* kernels, std::span<const int> numbers,
             std::span<const std::shared_ptr<ort::DeviceMemoryBudget>> budgets = {});

  /// Makes a matte on the device with the fewest jobs of those on which its networks work; the job
  /// stays there. If that device stops working, its networks are told so, and the job runs once
  /// more, on another one: its pixels are changed last. kDevice where none works. The caller runs
  /// at most as many jobs at a time as the networks have slots. The pool is the job's.
  Status run(const MatteRequest& job, ThreadPool& pool, const CancelToken& token,
             MatteResult& result);

  /// Where values of networks on a device lie; null: on the host.
  [[nodiscard]] Device* memory(std::size_t device) const { return devices_[device].memory.get(); }
  /// Returns the memory that is kept to the devices.
  void release_kept() noexcept;

 private:
  struct PooledDevice {
    std::unique_ptr<Device> memory;
    std::vector<bool> slots;  // of its networks, whether a job has it; guarded by mutex_
  };
  [[nodiscard]] std::unique_ptr<Backend> open_backend(std::size_t device, ThreadPool& pool) const;
  /// The device of a job, counted until it is left.
  class DeviceLease;

  std::vector<PooledDevice> devices_;
  std::mutex mutex_;
};

}  // namespace cutout
