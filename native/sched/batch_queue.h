#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/batch_policy.h"

namespace cutout {

/// Stores the runs that wait for devices and those in batches, and asks the policy
/// (batch_policy.h) what to start; Batcher runs it. Without threads and without a clock: every
/// function is given the time. Each run that push() accepted is handed back exactly once, by
/// cancel(), next(), finish() or lose(). Not thread-safe.
class BatchQueue {
 public:
  /// A batch that was started.
  struct Batch {
    std::size_t device = 0;
    std::size_t shape = 0;
    std::size_t bucket = 0;
    std::vector<std::uint64_t> members;  // in the order of their places in the batch
  };

  struct Step {
    std::vector<std::uint64_t> refused;  // cannot be in time
    std::vector<Batch> started;
    /// When to call next() again, unless something happens before; none: only then.
    std::optional<Clock::time_point> wake;
  };

  enum class Cancelled {
    kUnknown,         // no such run, or one that was cancelled before
    kRemoved,         // it was waiting; it is handed back with this
    kInBatch,         // it is in a batch, which goes on; handed back as the batch ends
    kBatchAbandoned,  // as kInBatch, and all other members were cancelled before
  };

  struct Ended {
    std::vector<std::uint64_t> completed;
    std::vector<std::uint64_t> cancelled;
  };

  BatchQueue(std::size_t devices, BatchLimits limits);

  /// Adds a shape and returns its number. `buckets` as for next_batch().
  std::size_t add_shape(std::vector<BatchBucket> buckets);
  /// Corrects an estimate; it counts for batches that start from now on.
  void set_latency(std::size_t shape, std::size_t bucket, Clock::duration latency);
  [[nodiscard]] const std::vector<BatchBucket>& buckets(std::size_t shape) const {
    return tables_[shape];
  }

  /// Takes a run, whose id is not in use. False when all devices are lost.
  [[nodiscard]] bool push(const WaitingRun& run);
  Cancelled cancel(std::uint64_t id);
  /// Starts what next_batch() wants started.
  Step next(Clock::time_point now);
  /// The batch of this device has ended.
  Ended finish(std::size_t device);
  /// The device has stopped working for good. Returns its members and, if it was the last one,
  /// everything that waits.
  Ended lose(std::size_t device);
  /// Forgets all runs, without handing them back; lost devices stay lost. Does not allocate.
  void clear();

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Member {
    std::uint64_t id;
    bool cancelled;
  };

  [[nodiscard]] bool all_lost() const;

  const BatchLimits limits_;
  std::vector<std::vector<BatchBucket>> tables_;
  std::vector<WaitingRun> waiting_;
  FlowShares shares_;
  std::vector<DeviceState> states_;
  std::vector<std::vector<Member>> running_;  // for each device
};

}  // namespace cutout
