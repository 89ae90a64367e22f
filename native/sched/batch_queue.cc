#include "sched/batch_queue.h"

#include <algorithm>
#include <utility>

namespace cutout {

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
  BatchDecision decision = next_batch(waiting_, buckets_, limits_, now);
  Step step{{}, {}, decision.bucket, decision.wake};
  for (const std::size_t run : decision.refused) step.refused.push_back(waiting_[run].id);
  for (const std::size_t run : decision.members) {
    step.members.push_back(waiting_[run].id);
    batch_.push_back({waiting_[run], false});
  }
  std::vector<std::size_t> removed = std::move(decision.refused);
  removed.insert(removed.end(), decision.members.begin(), decision.members.end());
  std::ranges::sort(removed, std::ranges::greater());
  for (const std::size_t run : removed)
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(run));
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
