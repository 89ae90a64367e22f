#include "sched/batch_policy.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cutout {

void FlowShares::arrive(std::uint64_t flow) {
  const auto [found, added] = flows_.try_emplace(flow);
  Flow& of = found->second;
  if (of.waiting == 0) of.served = std::max(of.served, virtual_time_);
  ++of.waiting;
}

void FlowShares::leave(std::uint64_t flow) {
  --flows_.at(flow).waiting;
  drop_idle();
}

void FlowShares::start(std::uint64_t flow, Clock::duration latency, std::size_t members) {
  Flow& of = flows_.at(flow);
  --of.waiting;
  virtual_time_ = std::max(virtual_time_, of.served);
  of.served += latency / static_cast<Clock::rep>(members);
  drop_idle();
}

Clock::duration FlowShares::served(std::uint64_t flow) const { return flows_.at(flow).served; }

void FlowShares::drop_idle() {
  const auto idle = [](const auto& entry) { return entry.second.waiting == 0; };
  // Without competitors nothing is owed.
  if (std::ranges::all_of(flows_, idle)) {
    flows_.clear();
    virtual_time_ = Clock::duration(0);
    return;
  }
  std::erase_if(flows_, [&](const auto& entry) {
    return idle(entry) && entry.second.served <= virtual_time_;
  });
}

namespace {

using Indices = std::vector<std::size_t>;

/// The runs that wait, seen at `now`.
class Queue {
 public:
  Queue(std::span<const WaitingRun> waiting, const FlowShares& shares,
        std::span<const std::vector<BatchBucket>> tables, const BatchLimits& limits,
        Clock::time_point now)
      : waiting_(waiting), shares_(shares), tables_(tables), limits_(limits), now_(now) {}

  /// The latest time at which a run in this bucket may start; none: any.
  [[nodiscard]] std::optional<Clock::time_point> latest_start(std::size_t run,
                                                              const BatchBucket& bucket) const {
    const auto& deadline = waiting_[run].deadline;
    if (!deadline) return {};
    return *deadline - bucket.latency;
  }

  /// Takes at most `count` of `runs` that can be in time in this bucket, in fair order.
  [[nodiscard]] Indices take(const Indices& runs, const BatchBucket& bucket,
                             std::size_t count) const {
    struct Flow {
      Clock::duration served{0};
      Indices runs;  // the most urgent last
    };
    std::map<std::uint64_t, Flow> flows;
    for (const std::size_t run : runs) {
      const auto latest = latest_start(run, bucket);
      if (!latest || *latest >= now_) flows[waiting_[run].flow].runs.push_back(run);
    }
    for (auto& [id, flow] : flows) {
      flow.served = shares_.served(id);
      std::ranges::sort(flow.runs, [this](std::size_t a, std::size_t b) { return urgent(b, a); });
    }
    Indices taken;
    while (taken.size() < count && !flows.empty()) {
      const auto first = std::ranges::min_element(flows, [this](const auto& a, const auto& b) {
        if (a.second.served != b.second.served) return a.second.served < b.second.served;
        return urgent(a.second.runs.back(), b.second.runs.back());
      });
      Flow& flow = first->second;
      taken.push_back(flow.runs.back());
      flow.runs.pop_back();
      flow.served += bucket.latency / static_cast<Clock::rep>(bucket.size);
      if (flow.runs.empty()) flows.erase(first);
    }
    return taken;
  }

  /// When a batch of these runs, all of one shape, has to start although it is not full.
  [[nodiscard]] Clock::time_point due(const Indices& runs) const {
    const std::vector<BatchBucket>& buckets = tables_[waiting_[runs.front()].shape];
    const auto enough = std::ranges::find_if(
        buckets, [&](const BatchBucket& bucket) { return bucket.size >= runs.size(); });
    const BatchBucket& bucket = enough == buckets.end() ? buckets.back() : *enough;
    Clock::time_point due = Clock::time_point::max();
    for (const std::size_t run : runs) {
      due = std::min(due, waiting_[run].arrival + limits_.max_delay);
      if (const auto latest = latest_start(run, bucket)) due = std::min(due, *latest);
    }
    return due;
  }

  /// Members and bucket with the most images per unit of time, of at most `count` runs.
  void choose(const Indices& runs, std::size_t count, BatchDecision& decision) const {
    const std::vector<BatchBucket>& buckets = tables_[waiting_[runs.front()].shape];
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      Indices members = take(runs, buckets[i], std::min(count, buckets[i].size));
      const auto rate = [&](std::size_t images, std::size_t bucket) {
        return static_cast<double>(images) / static_cast<double>(buckets[bucket].latency.count());
      };
      if (!members.empty() &&
          (decision.members.empty() ||
           rate(members.size(), i) > rate(decision.members.size(), decision.bucket))) {
        decision.members = std::move(members);
        decision.bucket = i;
      }
      if (buckets[i].size >= count && !decision.members.empty()) return;
    }
  }

 private:
  [[nodiscard]] bool urgent(std::size_t a, std::size_t b) const {
    const auto key = [this](std::size_t run) {
      const WaitingRun& of = waiting_[run];
      return std::tuple(of.deadline.value_or(of.arrival + limits_.ageing), of.arrival, of.id);
    };
    return key(a) < key(b);
  }

  std::span<const WaitingRun> waiting_;
  const FlowShares& shares_;
  std::span<const std::vector<BatchBucket>> tables_;
  const BatchLimits& limits_;
  Clock::time_point now_;
};

/// When a device is free first; `now` if all are lost.
Clock::time_point first_free(std::span<const DeviceState> devices, Clock::time_point now) {
  Clock::time_point first = Clock::time_point::max();
  for (const DeviceState& device : devices) {
    if (device.kind == DeviceState::Kind::kIdle) return now;
    if (device.kind == DeviceState::Kind::kBusy) first = std::min(first, device.free_at);
  }
  return first == Clock::time_point::max() ? now : std::max(first, now);
}

}  // namespace

BatchDecision next_batch(std::span<const WaitingRun> waiting, const FlowShares& shares,
                         std::span<const DeviceState> devices,
                         std::span<const std::vector<BatchBucket>> tables,
                         const BatchLimits& limits, Clock::time_point now) {
  BatchDecision decision;
  const Queue queue(waiting, shares, tables, limits, now);
  const auto wake = [&decision](Clock::time_point at) {
    decision.wake = std::min(decision.wake.value_or(at), at);
  };

  const auto is_idle = [](const DeviceState& device) {
    return device.kind == DeviceState::Kind::kIdle;
  };
  const auto idle = static_cast<std::size_t>(std::ranges::count_if(devices, is_idle));
  const Clock::time_point start = first_free(devices, now);
  std::map<std::size_t, Indices> shapes;
  for (std::size_t run = 0; run < waiting.size(); ++run) {
    const std::vector<BatchBucket>& buckets = tables[waiting[run].shape];
    const auto fastest = std::ranges::min_element(buckets, {}, &BatchBucket::latency);
    const auto latest = queue.latest_start(run, *fastest);
    if (latest && *latest < start) {
      decision.refused.push_back(run);
    } else {
      if (idle > 0) shapes[waiting[run].shape].push_back(run);
      if (latest) wake(std::max(*latest, now) + Clock::duration(1));
    }
  }
  if (idle == 0) return decision;
  decision.device =
      static_cast<std::size_t>(std::ranges::find_if(devices, is_idle) - devices.begin());

  Indices ready;
  for (const auto& [shape, runs] : shapes) {
    const Clock::time_point due = queue.due(runs);
    if (idle > 1 || runs.size() >= tables[shape].back().size || due <= now) {
      ready.insert(ready.end(), runs.begin(), runs.end());
    } else {
      wake(due);
    }
  }
  if (ready.empty()) return decision;

  // The run that is first in fair order decides the shape. Any latency orders the flows alike.
  const BatchBucket at_once{1, Clock::duration(0)};
  const Indices first = queue.take(ready, at_once, 1);
  const Indices& runs = shapes[waiting[first.front()].shape];
  queue.choose(runs, (runs.size() + idle - 1) / idle, decision);
  decision.wake.reset();
  return decision;
}

}  // namespace cutout
