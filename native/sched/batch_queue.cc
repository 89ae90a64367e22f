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

void BatchQueue::set_latency(std::size_t shape, std::size_t bucket, Clock::duration latency) {
  tables_[shape][bucket].latency = std::max(latency, Clock::duration(1));
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
    const auto member = std::ranges::find(members, id, &Member::id);
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
        running_[batch.device].push_back({member.id, false});
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
    (member.cancelled ? ended.cancelled : ended.completed).push_back(member.id);
  running_[device].clear();
  states_[device] = {};
  return ended;
}

void BatchQueue::clear() {
  waiting_.clear();
  shares_ = {};
  for (std::vector<Member>& members : running_) members.clear();
  for (DeviceState& state : states_) {
    if (state.kind == DeviceState::Kind::kBusy) state = {};
  }
}

BatchQueue::Ended BatchQueue::lose(std::size_t device) {
  Ended ended = finish(device);
  states_[device].kind = DeviceState::Kind::kLost;
  if (!all_lost()) return ended;
  for (const WaitingRun& run : waiting_) {
    ended.completed.push_back(run.id);
    shares_.leave(run.flow);
  }
  waiting_.clear();
  return ended;
}

}  // namespace cutout
