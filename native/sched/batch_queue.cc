#include "sched/batch_queue.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace cutout {

namespace {

/// Whether a batch of this latency that starts at `start` ends by the run's deadline.
bool in_time(const WaitingRun& run, Clock::time_point start, Clock::duration latency) {
  return !run.deadline || *run.deadline - latency >= start;
}

/// When a batch of these runs has to start although it is not full.
Clock::time_point due(std::span<const WaitingRun> runs, std::span<const BatchBucket> buckets,
                      const BatchLimits& limits) {
  const auto enough = std::ranges::find_if(
      buckets, [&](const BatchBucket& bucket) { return bucket.size >= runs.size(); });
  const BatchBucket& bucket = enough == buckets.end() ? buckets.back() : *enough;
  Clock::time_point due = Clock::time_point::max();
  for (const WaitingRun& run : runs) {
    due = std::min(due, run.arrival + limits.max_delay);
    if (run.deadline) due = std::min(due, *run.deadline - bucket.latency);
  }
  return due;
}

/// The bucket with the most images per unit of time, of those runs that are in time in it.
std::size_t fastest_bucket(std::span<const WaitingRun> runs, std::span<const BatchBucket> buckets,
                           Clock::time_point now) {
  std::size_t fastest = 0;
  double most = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& [size, latency] = buckets[i];
    const auto timely = static_cast<std::size_t>(std::ranges::count_if(
        runs, [&](const WaitingRun& run) { return in_time(run, now, latency); }));
    const double rate =
        static_cast<double>(std::min(timely, size)) / static_cast<double>(latency.count());
    if (rate > most) {
      most = rate;
      fastest = i;
    }
    if (size >= runs.size() && most > 0) break;
  }
  return fastest;
}

}  // namespace

BatchQueue::BatchQueue(std::vector<BatchBucket> buckets, BatchLimits limits)
    : limits_(limits), buckets_(std::move(buckets)) {}

void BatchQueue::set_latency(std::size_t size, Clock::duration latency) {
  std::ranges::find(buckets_, size, &BatchBucket::size)->latency =
      std::max(latency, Clock::duration(1));
}

bool BatchQueue::shrink(std::size_t size) {
  if (buckets_.front().size >= size) return false;
  std::erase_if(buckets_, [size](const BatchBucket& bucket) { return bucket.size >= size; });
  return true;
}

bool BatchQueue::push(const WaitingRun& run) {
  if (lost_) return false;
  waiting_.push_back(run);
  return true;
}

BatchQueue::Cancelled BatchQueue::cancel(std::uint64_t id) {
  const auto found = std::ranges::find(waiting_, id, &WaitingRun::id);
  if (found != waiting_.end()) {
    waiting_.erase(found);
    return Cancelled::kRemoved;
  }
  const auto member =
      std::ranges::find(batch_, id, [](const Member& candidate) { return candidate.run.id; });
  if (member == batch_.end() || member->cancelled) return Cancelled::kUnknown;
  member->cancelled = true;
  const bool last = std::ranges::all_of(batch_, &Member::cancelled);
  return last ? Cancelled::kBatchAbandoned : Cancelled::kInBatch;
}

BatchQueue::Step BatchQueue::next(Clock::time_point now) {
  Step step;
  const Clock::duration least = std::ranges::min(buckets_, {}, &BatchBucket::latency).latency;
  const auto refuse_late = [&](Clock::time_point start) {
    std::erase_if(waiting_, [&](const WaitingRun& run) {
      if (in_time(run, start, least)) return false;
      step.refused.push_back(run.id);
      return true;
    });
  };
  refuse_late(now);
  if (waiting_.empty()) return step;
  const Clock::time_point start = due(waiting_, buckets_, limits_);
  if (waiting_.size() < buckets_.back().size && start > now) {
    step.wake = start;
    return step;
  }
  std::ranges::sort(waiting_, {}, [&](const WaitingRun& run) {
    return std::tuple(run.deadline.value_or(run.arrival + limits_.ageing), run.arrival, run.id);
  });
  step.bucket = fastest_bucket(waiting_, buckets_, now);
  const BatchBucket& bucket = buckets_[step.bucket];
  std::erase_if(waiting_, [&](const WaitingRun& run) {
    if (step.members.size() == bucket.size || !in_time(run, now, bucket.latency)) return false;
    step.members.push_back(run.id);
    batch_.push_back({run, false});
    return true;
  });
  refuse_late(now + bucket.latency);
  return step;
}

BatchQueue::Ended BatchQueue::finish() {
  Ended ended;
  for (const Member& member : batch_)
    (member.cancelled ? ended.cancelled : ended.runs).push_back(member.run.id);
  batch_.clear();
  return ended;
}

std::vector<std::uint64_t> BatchQueue::retry() {
  for (const Member& member : batch_) {
    if (!member.cancelled) waiting_.push_back(member.run);
  }
  return finish().cancelled;
}

BatchQueue::Ended BatchQueue::lose() {
  lost_ = true;
  Ended ended = finish();
  for (const WaitingRun& run : waiting_) ended.runs.push_back(run.id);
  waiting_.clear();
  return ended;
}

void BatchQueue::forget() {
  batch_.clear();
  waiting_.clear();
}

}  // namespace cutout
