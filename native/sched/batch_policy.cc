#include "sched/batch_policy.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cutout {

namespace {

using Indices = std::vector<std::size_t>;

/// Whether a batch of this latency that starts at `start` ends by the run's deadline.
bool in_time(const WaitingRun& run, Clock::time_point start, Clock::duration latency) {
  return !run.deadline || *run.deadline - latency >= start;
}

/// When a batch of these runs has to start although it is not full.
Clock::time_point due(std::span<const WaitingRun> waiting, const Indices& runs,
                      std::span<const BatchBucket> buckets, const BatchLimits& limits) {
  const auto enough = std::ranges::find_if(
      buckets, [&](const BatchBucket& bucket) { return bucket.size >= runs.size(); });
  const BatchBucket& bucket = enough == buckets.end() ? buckets.back() : *enough;
  Clock::time_point due = Clock::time_point::max();
  for (const std::size_t run : runs) {
    due = std::min(due, waiting[run].arrival + limits.max_delay);
    if (waiting[run].deadline) due = std::min(due, *waiting[run].deadline - bucket.latency);
  }
  return due;
}

/// Members and bucket of these runs, the most urgent first, with the most images per unit of time.
void choose(std::span<const WaitingRun> waiting, const Indices& runs,
            std::span<const BatchBucket> buckets, Clock::time_point now, BatchDecision& decision) {
  const auto rate = [&](std::size_t images, std::size_t bucket) {
    return static_cast<double>(images) / static_cast<double>(buckets[bucket].latency.count());
  };
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    Indices members;
    for (const std::size_t run : runs) {
      if (members.size() == buckets[i].size) break;
      if (in_time(waiting[run], now, buckets[i].latency)) members.push_back(run);
    }
    if (!members.empty() &&
        (decision.members.empty() ||
         rate(members.size(), i) > rate(decision.members.size(), decision.bucket))) {
      decision.members = std::move(members);
      decision.bucket = i;
    }
    if (buckets[i].size >= runs.size() && !decision.members.empty()) return;
  }
}

}  // namespace

BatchDecision next_batch(std::span<const WaitingRun> waiting, std::span<const BatchBucket> buckets,
                         const BatchLimits& limits, Clock::time_point now) {
  BatchDecision decision;
  const Clock::duration fastest = std::ranges::min(buckets, {}, &BatchBucket::latency).latency;
  Indices runs;
  for (std::size_t run = 0; run < waiting.size(); ++run)
    (in_time(waiting[run], now, fastest) ? runs : decision.refused).push_back(run);
  if (runs.empty()) return decision;

  const Clock::time_point start = due(waiting, runs, buckets, limits);
  if (runs.size() < buckets.back().size && start > now) {
    decision.wake = start;
    return decision;
  }
  std::ranges::sort(runs, {}, [&](std::size_t run) {
    const WaitingRun& of = waiting[run];
    return std::tuple(of.deadline.value_or(of.arrival + limits.ageing), of.arrival, of.id);
  });
  choose(waiting, runs, buckets, now, decision);

  const Clock::time_point end = now + buckets[decision.bucket].latency;
  for (const std::size_t run : runs) {
    const bool started = std::ranges::find(decision.members, run) != decision.members.end();
    if (!started && !in_time(waiting[run], end, fastest)) decision.refused.push_back(run);
  }
  return decision;
}

}  // namespace cutout
