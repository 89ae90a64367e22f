#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cancel.h"

namespace cutout {

/// The policy decides which waiting runs a device computes together and when; BatchQueue stores the
/// runs, and Batcher runs them.

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

/// What next_batch() decided. Indices of `waiting`; no run is in both lists.
struct BatchDecision {
  /// Runs that the device cannot finish by their deadline any more, after this batch.
  std::vector<std::size_t> refused;
  /// The runs to start now; empty: nothing is started.
  std::vector<std::size_t> members;
  std::size_t bucket = 0;
  /// When to ask again, where there are no members, unless a run arrives or is cancelled before;
  /// none: only then.
  std::optional<Clock::time_point> wake;
};

/// Decides what an idle device does next. A pure function: it reads no clock and keeps no state.
///
/// | guarantee  |                                                                               |
/// |------------|-------------------------------------------------------------------------------|
/// | deadlines  | a member's deadline is not before `now` plus the bucket's latency; a run that |
/// |            | the device could not finish alone in time, now or after this batch, is refused |
/// | delay      | a batch is started when the largest bucket is full, when the oldest run has   |
/// |            | waited `max_delay`, or when waiting would cost a deadline                     |
/// | batch      | the number of members and the bucket with the most images per unit of time;   |
/// |            | the smaller bucket if equal                                                   |
/// | order      | seats go to the earliest deadline, then to the earliest arrival               |
/// | throughput | a run that only a smaller batch could still finish in time does not hold up a  |
/// |            | fuller one: it is passed over, and refused when no batch can                  |
///
/// `buckets` is not empty, in ascending order of size, with positive latencies. Time and memory
/// grow with the number of waiting runs n as n · log n, times the buckets.
BatchDecision next_batch(std::span<const WaitingRun> waiting, std::span<const BatchBucket> buckets,
                         const BatchLimits& limits, Clock::time_point now);

}  // namespace cutout
