#include "sched/batch_queue.h"

#include <algorithm>
#include <utility>

namespace cutout {

namespace {

/// The bucket with the most images per unit of time for so many waiting runs.
std::size_t fastest_bucket(std::size_t waiting, const std::vector<BatchBucket>& buckets) {
  std::size_t fastest = 0;
  double most = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& [size, latency] = buckets[i];
    const double rate =
        static_cast<double>(std::min(waiting, size)) / static_cast<double>(latency.count());
    if (rate > most) {
      most = rate;
      fastest = i;
    }
    if (size >= waiting) break;
  }
  return fastest;
}

}  // namespace

BatchQueue::BatchQueue(std::vector<BatchBucket> buckets, Clock::duration max_delay)
    : max_delay_(max_delay), buckets_(std::move(buckets)) {}

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
  if (waiting_.empty()) return step;
  const Clock::time_point due = waiting_.front().arrival + max_delay_;
  if (waiting_.size() < buckets_.back().size && due > now) {
    step.wake = due;
    return step;
  }
  step.bucket = fastest_bucket(waiting_.size(), buckets_);
  const std::size_t count = std::min(waiting_.size(), buckets_[step.bucket].size);
  const auto behind = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto run = waiting_.begin(); run != behind; ++run) {
    step.members.push_back(run->id);
    batch_.push_back({*run, false});
  }
  waiting_.erase(waiting_.begin(), behind);
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
  std::vector<WaitingRun> again;
  for (const Member& member : batch_) {
    if (!member.cancelled) again.push_back(member.run);
  }
  waiting_.insert(waiting_.begin(), again.begin(), again.end());
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
