#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/batch_queue.h"

namespace cutout::test {

struct Load {
  std::size_t devices = 1;
  std::vector<BatchBucket> buckets;
  Clock::duration max_delay{0};
  double runs_per_second = 0;  // a Poisson process
  std::size_t runs = 0;
  std::uint64_t seed = 1;
};

struct Outcome {
  std::vector<double> milliseconds;  // from arrival to answer, of each run
  std::vector<std::size_t> batches;  // for each bucket, the number of batches
  std::vector<std::size_t> members;  // for each bucket, the members of all its batches
  double seconds = 0;                // from the first arrival to the last answer
  double busy = 0;                   // share of the devices' time in which they ran
};

/// A BatchQueue for each device under load, on a simulated clock. A run goes to the device with the
/// fewest runs in progress, as a job does (pipeline/device_pool.h). Each batch takes exactly its
/// bucket's latency, in which its queue is not asked, as by Batcher.
Outcome simulate(const Load& load);

}  // namespace cutout::test
