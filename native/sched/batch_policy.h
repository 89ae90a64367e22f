#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/cancel.h"

namespace cutout {

/// The policy decides which waiting runs a device computes together and when; BatchQueue stores the
/// runs, and Batcher runs them.

/// A run of a network that waits for a device.
struct WaitingRun {
  std::uint64_t id = 0;
  /// Given by the caller; flows share the devices' time evenly. The engine's runs are all one flow,
  /// because accounts are interleaved before they reach it (src/limits/fairScheduler.ts).
  std::uint64_t flow = 0;
  /// Runs of different shapes (network, input size) cannot share a batch; an index of the tables.
  std::size_t shape = 0;
  Clock::time_point arrival;
  std::optional<Clock::time_point> deadline;
  /// Whether a device was lost while it worked on the run. Not read by the policy.
  bool retried = false;
};

/// A number of images that a device computes in one run, and how long that takes. A batch of fewer
/// members is padded to the bucket's size and takes as long.
struct BatchBucket {
  std::size_t size = 1;
  Clock::duration latency{1};
};

struct DeviceState {
  enum class Kind { kIdle, kBusy, kLost };
  Kind kind = Kind::kIdle;
  /// Of a busy device: when its run is expected to end.
  Clock::time_point free_at;
};

struct BatchLimits {
  /// How long an idle device may wait for more members.
  Clock::duration max_delay{0};
  /// Ageing: within a flow, a run without a deadline is treated as if it were due this long after
  /// its arrival.
  Clock::duration ageing = std::chrono::seconds(30);
};

/// Device time that each flow has used, for start-time fair queueing. Idle flows accrue no credit.
class FlowShares {
 public:
  /// A run of the flow begins to wait.
  void arrive(std::uint64_t flow);
  /// A run of the flow was removed without being started.
  void leave(std::uint64_t flow);
  /// A run of the flow was started as one of `members` of a batch of this latency.
  void start(std::uint64_t flow, Clock::duration latency, std::size_t members);
  /// Virtual time of a flow that has arrived.
  [[nodiscard]] Clock::duration served(std::uint64_t flow) const;
  /// Flows that are remembered: those with waiting runs and those ahead of the others.
  [[nodiscard]] std::size_t size() const { return flows_.size(); }

 private:
  struct Flow {
    Clock::duration served{0};
    std::size_t waiting = 0;
  };
  void drop_idle();

  std::map<std::uint64_t, Flow> flows_;
  Clock::duration virtual_time_{0};
};

/// What next_batch() decided. Indices of `waiting`; no run is in both lists.
struct BatchDecision {
  /// Runs that no device can finish by their deadline any more, in ascending order.
  std::vector<std::size_t> refused;
  /// The runs to start now, of one shape; empty: nothing is started.
  std::vector<std::size_t> members;
  std::size_t device = 0;
  std::size_t bucket = 0;
  /// Without members: when to ask again, unless a run arrives, a run ends or a device's state
  /// changes before; none: only then.
  std::optional<Clock::time_point> wake;
};

/// Decides what devices with batches do next. A pure function: it reads no clock and keeps no
/// state. The caller removes refused runs and members from `waiting`, sets the device busy, and
/// asks again until nothing is started.
///
/// | guarantee  |                                                                               |
/// |------------|-------------------------------------------------------------------------------|
/// | deadlines  | a member's deadline is not before `now` plus the bucket's latency; a run that |
/// |            | the first free device could not finish alone in time is refused at once       |
/// | delay      | an idle device starts a batch when the largest bucket is full, when the oldest |
/// |            | run of a shape has waited `max_delay`, when waiting would cost a deadline, or  |
/// |            | when another device is idle for runs that arrive next                         |
/// | batch      | of the members that are ready, the number and bucket with the most images per |
/// |            | unit of time; the smaller bucket if equal. Idle devices share them evenly     |
/// | fairness   | seats go to the flow that has used the least device time; within a flow to the |
/// |            | earliest deadline, then to the earliest arrival                               |
/// | throughput | a run that only a smaller batch could still finish in time does not hold up a  |
/// |            | fuller one: it is passed over, and refused when no batch can                  |
///
/// `tables`: for each shape its buckets, not empty, in ascending order of size, with positive
/// latencies. `shares` knows the flow of every waiting run. Time and memory grow with the number of
/// waiting runs n as n · log n, times the buckets.
BatchDecision next_batch(std::span<const WaitingRun> waiting, const FlowShares& shares,
                         std::span<const DeviceState> devices,
                         std::span<const std::vector<BatchBucket>> tables,
                         const BatchLimits& limits, Clock::time_point now);

}  // namespace cutout
