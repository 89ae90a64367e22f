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
};

/// A number of images that the device computes in one run, and how long that takes. A batch of
/// fewer members takes as long, or less where the network computes no more than them.
struct BatchBucket {
  std::size_t size = 1;
  Clock::duration latency{1};
};

/// Stores the runs that wait for a device and those in its batch, and decides which of them the
/// device computes together and when; Batcher runs them. Without threads and without a clock:
/// next() is given the time. Each run that push() accepted is handed back exactly once, by
/// cancel(), next(), finish(), retry() or lose(). Not thread-safe.
///
/// | guarantee |                                                                                |
/// |-----------|--------------------------------------------------------------------------------|
/// | delay     | a batch is started when the largest bucket is full, or when the first run has  |
/// |           | waited `max_delay`                                                             |
/// | batch     | the number of members and the bucket with the most images per unit of time;    |
/// |           | the smaller bucket if equal                                                    |
/// | order     | first in, first out                                                            |
class BatchQueue {
 public:
  struct Step {
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

  /// `buckets` is not empty, in ascending order of size, with positive latencies; `max_delay` is
  /// how long the idle device may wait for more members.
  BatchQueue(std::vector<BatchBucket> buckets, Clock::duration max_delay);

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
  /// The batch has ended without a result: its members wait again, before all others. Hands back
  /// those that were cancelled.
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

  const Clock::duration max_delay_;
  std::vector<BatchBucket> buckets_;
  std::vector<WaitingRun> waiting_;
  std::vector<Member> batch_;  // in progress
  bool lost_ = false;
};

}  // namespace cutout
