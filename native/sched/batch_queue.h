#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cancel.h"

namespace cutout {

/// A run of a network that waits for the device.
struct WaitingRun {
  std::uint64_t id = 0;
  Clock::time_point arrival;
  std::optional<Clock::time_point> deadline;
};

/// A number of images that the device computes in one run, and how long that takes. A batch of
/// fewer members takes as long, or less where the network computes no more than them.
struct BatchBucket {
  std::size_t size = 1;
  Clock::duration latency{1};
};

struct BatchLimits {
  /// How long the idle device may wait for more members.
  Clock::duration max_delay{0};
  /// Ageing: a run without a deadline is treated as if it were due this long after its arrival.
  Clock::duration ageing = std::chrono::seconds(30);
};

/// Stores the runs that wait for a device and those in its batch, and decides which of them the
/// device computes together and when; Batcher runs them. Without threads and without a clock:
/// next() is given the time. Each run that push() accepted is handed back exactly once, by
/// cancel(), next(), finish(), retry() or lose(). Not thread-safe.
///
/// | guarantee  |                                                                               |
/// |------------|-------------------------------------------------------------------------------|
/// | deadlines  | a member's deadline is not before the start plus the bucket's latency; a run  |
/// |            | that the device could not finish alone in time, now or after this batch, is   |
/// |            | refused                                                                       |
/// | delay      | a batch is started when the largest bucket is full, when the oldest run has   |
/// |            | waited `max_delay`, or when waiting would cost a deadline                     |
/// | batch      | the number of members and the bucket with the most images per unit of time;   |
/// |            | the smaller bucket if equal                                                   |
/// | order      | seats go to the earliest deadline, then to the earliest arrival               |
/// | throughput | a run that only a smaller batch could still finish in time does not hold up a  |
/// |            | fuller one: it is passed over, and refused when no batch can                  |
///
/// Time grows with the number of waiting runs n as n · log n, times the buckets.
class BatchQueue {
 public:
  struct Step {
    std::vector<std::uint64_t> refused;  // cannot be in time
    /// The batch that was started, in the order of the places in it; empty: none.
    std::vector<std::uint64_t> members;
    std::size_t bucket = 0;
    /// When to call next() again, where there is no batch, unless something happens before; none:
    /// only then.
    std::optional<Clock::time_point> wake;
  };

  enum class Cancelled {
    kUnknown,         // no such run, or one that was cancelled before
    kRemoved,         // it was waiting; it is handed back with this
    kInBatch,         // it is in the batch, which goes on; handed back as the batch ends
    kBatchAbandoned,  // as kInBatch, and all other members were cancelled before
  };

  /// Runs that are handed back, apart by whether they were cancelled.
  struct Ended {
    std::vector<std::uint64_t> runs;
    std::vector<std::uint64_t> cancelled;
  };

  /// `buckets` is not empty, in ascending order of size, with positive latencies.
  BatchQueue(std::vector<BatchBucket> buckets, BatchLimits limits);

  /// Corrects the estimate of the bucket of this size, one of buckets(); it counts for batches that
  /// start from now on.
  void set_latency(std::size_t size, Clock::duration latency);
  /// Uses no buckets of this size or larger from now on. False, without effect, when none is left.
  bool shrink(std::size_t size);
  [[nodiscard]] const std::vector<BatchBucket>& buckets() const { return buckets_; }

  /// Takes a run, whose id is not in use. False while the device is lost.
  [[nodiscard]] bool push(const WaitingRun& run);
  Cancelled cancel(std::uint64_t id);
  /// Starts a batch of the idle device, or says when to ask again.
  Step next(Clock::time_point now);
  Ended finish();
  /// The batch has ended without a result: its members wait again, with their arrival and deadline.
  /// Hands back those that were cancelled.
  std::vector<std::uint64_t> retry();
  /// The device has stopped working: hands back everything.
  Ended lose();
  /// The lost device works again.
  void restore() { lost_ = false; }
  [[nodiscard]] bool is_lost() const { return lost_; }
  /// Forgets all runs without handing them back. Does not allocate.
  void forget();

 private:
  struct Member {
    WaitingRun run;
    bool cancelled;
  };

  const BatchLimits limits_;
  std::vector<BatchBucket> buckets_;
  std::vector<WaitingRun> waiting_;
  std::vector<Member> batch_;  // in progress
  bool lost_ = false;
};

}  // namespace cutout
