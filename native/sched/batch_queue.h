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
/// cancel(), next(), finish() or lose(). A run whose device is lost waits again, for another one;
/// the second device that is lost with it is its last. Not thread-safe.
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

  struct Lost {
    std::vector<std::uint64_t> failed;
    std::vector<std::uint64_t> cancelled;
    std::vector<std::uint64_t> retried;  // wait again; not handed back
  };

  BatchQueue(std::size_t devices, BatchLimits limits);

  /// Adds a shape and returns its number. `buckets` as for next_batch().
  std::size_t add_shape(std::vector<BatchBucket> buckets);
  /// Corrects the estimate of the bucket of this size; it counts for batches that start from now
  /// on.
  void set_latency(std::size_t shape, std::size_t size, Clock::duration latency);
  /// Uses no buckets of this size or larger from now on. False, without effect, when none is left.
  bool shrink(std::size_t shape, std::size_t size);
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
  /// The device has stopped working. Its members wait again, with their arrival and deadline,
  /// unless they were lost before. If no device is left, they and everything that waits have
  /// failed.
  Lost lose(std::size_t device);
  /// A lost device works again.
  void restore(std::size_t device);
  [[nodiscard]] bool is_lost(std::size_t device) const {
    return states_[device].kind == DeviceState::Kind::kLost;
  }
  /// The batch of this device has ended without a result: its members wait again, with their
  /// arrival and deadline. They are in `completed` and are not handed back, unless they were
  /// cancelled.
  Ended retry(std::size_t device);
  /// Forgets the members of a device, or the runs that wait, without handing them back; a busy
  /// device is idle then, a lost one stays lost. Do not allocate.
  void forget(std::size_t device);
  void forget_waiting();

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Member {
    WaitingRun run;
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
