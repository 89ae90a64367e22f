#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "ort/network.h"
#include "sched/batch_policy.h"

namespace cutout {

/// One network on every device of an engine. Inputs and outputs are the slots of the first
/// device's, in this process's memory, so that any device can take a run; those of the other
/// devices copy them. Devices are numbered from 0, in the order of the engine's options.
class Replicas {
 public:
  /// Opens the network on a device.
  using Open =
      std::function<Status(std::size_t device, const CancelToken&, std::unique_ptr<ort::Network>&)>;

  /// `first` is the network on device 0; it outlives this object. Opens it on the others.
  static Status open(ort::Network& first, std::size_t devices, Open open, ThreadPool& pool,
                     const CancelToken& token, std::unique_ptr<Replicas>& replicas);

  /// Sizes of batches that all devices have, with the latency of the slowest.
  [[nodiscard]] std::vector<BatchBucket> buckets() const;

  /// Network::run_batch() on a device, for slots of the first one. kDeviceMemory for a size that
  /// could not be opened there.
  Status run(std::size_t device, std::size_t size, std::span<const int> slots,
             const CancelToken& token);

  /// Runs the network on a device that was lost; if that fails, closes it there and opens it again.
  Status recover(std::size_t device, const CancelToken& token);
  Status reopen(std::size_t device, const CancelToken& token);

 private:
  Replicas(ort::Network& first, Open open, ThreadPool& pool)
      : first_(first), open_(std::move(open)), pool_(pool) {}
  [[nodiscard]] ort::Network& on(std::size_t device) const;

  ort::Network& first_;
  const Open open_;
  ThreadPool& pool_;
  /// Of device 0: empty until it was opened again. `first_` then has the slots only.
  std::vector<std::unique_ptr<ort::Network>> networks_;
};

}  // namespace cutout
