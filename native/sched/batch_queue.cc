#include "sched/batch_queue.h"

#include <algorithm>
#include <utility>

namespace cutout {

BatchQueue::BatchQueue(std::size_t devices, BatchLimits limits)
    : limits_(limits), states_(devices), running_(devices) {}

std::size_t BatchQueue::add_shape(std::vector<BatchBucket> buckets) {
  tables_.push_back(std::move(buckets));
  return tables_.size() - 1;
}

void BatchQueue::set_latency(std::size_t shape, std::size_t size, Clock::duration latency) {
  const auto found = std::ranges::find(tables_[shape], size, &BatchBucket::size);
  // Else it was dropped while a device ran it.
  if (found != tables_[shape].end()) found->latency = std::max(latency, Clock::duration(1));
}

bool BatchQueue::shrink(std::size_t shape, std::size_t size) {
  std::vector<BatchBucket>& buckets = tables_[shape];
  if (buckets.front().size >= size) return false;
  std::erase_if(buckets, [size](const BatchBucket& bucket) { return bucket.size >= size; });
  return true;
}

bool BatchQueue::all_lost() const {
  return std::ranges::all_of(
      states_, [](const DeviceState& state) { return state.kind == DeviceState::Kind::kLost; });
}

bool BatchQueue::push(const WaitingRun& run) {
  if (all_lost()) return false;
  waiting_.push_back(run);
  shares_.arrive(run.flow);
  return true;
}

BatchQueue::Cancelled BatchQueue::cancel(std::uint64_t id) {
  const auto found = std::ranges::find(waiting_, id, &WaitingRun::id);
  if (found != waiting_.end()) {
    shares_.leave(found->flow);
    waiting_.erase(found);
    return Cancelled::kRemoved;
  }
  for (std::vector<Member>& members : running_) {
    const auto member =
        std::ranges::find(members, id, [](const Member& candidate) { return candidate.run.id; });
    if (member == members.end()) continue;
    if (member->cancelled) return Cancelled::kUnknown;
    member->cancelled = true;
    const bool last = std::ranges::all_of(members, &Member::cancelled);
    return last ? Cancelled::kBatchAbandoned : Cancelled::kInBatch;
  }
  return Cancelled::kUnknown;
}

BatchQueue::Step BatchQueue::next(Clock::time_point now) {
  Step step;
  for (;;) {
    const BatchDecision decision = next_batch(waiting_, shares_, states_, tables_, limits_, now);
    for (const std::size_t run : decision.refused) {
      shares_.leave(waiting_[run].flow);
      step.refused.push_back(waiting_[run].id);
    }
    Batch batch;
    std::vector<std::size_t> removed = decision.refused;
    if (!decision.members.empty()) {
      batch.device = decision.device;
      batch.shape = waiting_[decision.members.front()].shape;
      batch.bucket = decision.bucket;
      const Clock::duration latency = tables_[batch.shape][batch.bucket].latency;
      for (const std::size_t run : decision.members) {
        const WaitingRun& member = waiting_[run];
        shares_.start(member.flow, latency, decision.members.size());
        batch.members.push_back(member.id);
        running_[batch.device].push_back({member, false});
      }
      states_[batch.device] = {DeviceState::Kind::kBusy, now + latency};
      removed.insert(removed.end(), decision.members.begin(), decision.members.end());
    }
    std::ranges::sort(removed, std::ranges::greater());
    for (const std::size_t run : removed)
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(run));
    if (decision.members.empty()) {
      step.wake = decision.wake;
      return step;
    }
    step.started.push_back(std::move(batch));
  }
}

BatchQueue::Ended BatchQueue::finish(std::size_t device) {
  Ended ended;
  for (const Member& member : running_[device])
    (member.cancelled ? ended.cancelled : ended.completed).push_back(member.run.id);
  running_[device].clear();
  states_[device] = {};
  return ended;
}

BatchQueue::Ended BatchQueue::retry(std::size_t device) {
  const std::vector<Member> members = running_[device];
  Ended ended = finish(device);
  for (const Member& member : members) {
    if (member.cancelled) continue;
    waiting_.push_back(member.run);
    shares_.arrive(member.run.flow);
  }
  return ended;
}

void BatchQueue::forget(std::size_t device) {
  running_[device].clear();
  if (states_[device].kind == DeviceState::Kind::kBusy) states_[device] = {};
}

void BatchQueue::forget_waiting() {
  waiting_.clear();
  shares_ = {};
}

BatchQueue::Lost BatchQueue::lose(std::size_t device) {
  Lost lost;
  states_[device] = {DeviceState::Kind::kLost, {}};
  const bool last = all_lost();
  for (Member& member : running_[device]) {
    WaitingRun& run = member.run;
    if (member.cancelled) {
      lost.cancelled.push_back(run.id);
    } else if (last || run.retried) {
      lost.failed.push_back(run.id);
    } else {
      run.retried = true;
      lost.retried.push_back(run.id);
      waiting_.push_back(run);
      shares_.arrive(run.flow);
    }
  }
  running_[device].clear();
  if (!last) return lost;
  for (const WaitingRun& run : waiting_) {
    lost.failed.push_back(run.id);
    shares_.leave(run.flow);
  }
  waiting_.clear();
  return lost;
}

void BatchQueue::restore(std::size_t device) { states_[device] = {}; }

}  // namespace cutout
