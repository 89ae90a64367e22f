#include "sched/simulation.h"

#include <algorithm>
#include <random>

#include "sched/batch_queue.h"

namespace cutout::test {

namespace {

using Time = Clock::time_point;

struct Running {
  BatchQueue::Batch batch;
  Time end;
};

}  // namespace

Outcome simulate(const Load& load) {
  std::mt19937_64 random(load.seed);
  std::exponential_distribution<double> gap(load.runs_per_second);
  std::uniform_int_distribution<std::uint64_t> flow(0, load.flows - 1);
  BatchQueue queue(load.devices, load.limits);
  const std::size_t shape = queue.add_shape(load.buckets);

  Outcome outcome;
  outcome.batches.resize(load.buckets.size());
  outcome.members.resize(load.buckets.size());
  std::vector<Time> arrivals;
  std::vector<Running> running;
  std::optional<Time> wake;
  Time next_arrival{};
  Time last_answer{};
  Clock::duration busy{0};
  while (arrivals.size() < load.runs || !running.empty() || queue.waiting() > 0) {
    Time now = Time::max();
    if (arrivals.size() < load.runs) now = next_arrival;
    if (wake) now = std::min(now, *wake);
    for (const Running& run : running) now = std::min(now, run.end);

    std::erase_if(running, [&](const Running& run) {
      if (run.end > now) return false;
      for (const std::uint64_t id : queue.finish(run.batch.device).completed)
        outcome.milliseconds.push_back(milliseconds(arrivals[id], now));
      last_answer = now;
      return true;
    });
    if (arrivals.size() < load.runs && next_arrival <= now) {
      std::optional<Time> deadline;
      if (load.deadline) deadline = now + *load.deadline;
      // Devices are never lost here, so that push() takes everything.
      if (queue.push({arrivals.size(), flow(random), shape, now, deadline}))
        arrivals.push_back(now);
      const std::chrono::duration<double> seconds(gap(random));
      next_arrival = now + std::chrono::duration_cast<Clock::duration>(seconds);
    }
    const BatchQueue::Step step = queue.next(now);
    wake = step.wake;
    outcome.refused += step.refused.size();
    for (const BatchQueue::Batch& batch : step.started) {
      const Clock::duration latency = load.buckets[batch.bucket].latency;
      running.push_back({batch, now + latency});
      ++outcome.batches[batch.bucket];
      outcome.members[batch.bucket] += batch.members.size();
      busy += latency;
    }
  }
  outcome.seconds = std::chrono::duration<double>(last_answer - Time{}).count();
  outcome.busy = std::chrono::duration<double>(busy).count() /
                 (outcome.seconds * static_cast<double>(load.devices));
  return outcome;
}

}  // namespace cutout::test
