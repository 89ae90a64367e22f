#include "sched/simulation.h"

#include <algorithm>
#include <random>
#include <utility>

#include "sched/batch_queue.h"

namespace cutout::test {

namespace {

using Time = Clock::time_point;

constexpr std::size_t kShape = 0;

/// A device, what runs on it, and how many runs it was given that are not answered.
struct Device {
  explicit Device(const Load& load) : queue(1, load.limits) { queue.add_shape(load.buckets); }

  BatchQueue queue;
  std::optional<BatchQueue::Batch> batch;
  Time end;
  std::optional<Time> wake;
  std::size_t runs = 0;
};

}  // namespace

Outcome simulate(const Load& load) {
  std::mt19937_64 random(load.seed);
  std::exponential_distribution<double> gap(load.runs_per_second);
  std::uniform_int_distribution<std::uint64_t> flow(0, load.flows - 1);
  std::vector<Device> devices(load.devices, Device(load));

  Outcome outcome;
  outcome.batches.resize(load.buckets.size());
  outcome.members.resize(load.buckets.size());
  std::vector<Time> arrivals;
  Time next_arrival{};
  Time last_answer{};
  Clock::duration busy{0};
  const auto in_progress = [](const Device& device) { return device.runs > 0; };
  while (arrivals.size() < load.runs || std::ranges::any_of(devices, in_progress)) {
    Time now = Time::max();
    if (arrivals.size() < load.runs) now = next_arrival;
    for (const Device& device : devices) {
      if (device.wake) now = std::min(now, *device.wake);
      if (device.batch) now = std::min(now, device.end);
    }

    for (Device& device : devices) {
      if (!device.batch || device.end > now) continue;
      device.batch.reset();
      for (const std::uint64_t id : device.queue.finish(0).completed) {
        outcome.milliseconds.push_back(milliseconds(arrivals[id], now));
        --device.runs;
      }
      last_answer = now;
    }
    if (arrivals.size() < load.runs && next_arrival <= now) {
      std::optional<Time> deadline;
      if (load.deadline) deadline = now + *load.deadline;
      Device& least = *std::ranges::min_element(devices, {}, &Device::runs);
      // Devices are never lost here, so that push() takes everything.
      if (least.queue.push({arrivals.size(), flow(random), kShape, now, deadline})) ++least.runs;
      arrivals.push_back(now);
      const std::chrono::duration<double> seconds(gap(random));
      next_arrival = now + std::chrono::duration_cast<Clock::duration>(seconds);
    }
    for (Device& device : devices) {
      BatchQueue::Step step = device.queue.next(now);
      device.wake = step.wake;
      outcome.refused += step.refused.size();
      device.runs -= step.refused.size();
      for (BatchQueue::Batch& batch : step.started) {
        const Clock::duration latency = load.buckets[batch.bucket].latency;
        ++outcome.batches[batch.bucket];
        outcome.members[batch.bucket] += batch.members.size();
        busy += latency;
        device.end = now + latency;
        device.batch = std::move(batch);
      }
    }
  }
  outcome.seconds = std::chrono::duration<double>(last_answer - Time{}).count();
  outcome.busy = std::chrono::duration<double>(busy).count() /
                 (outcome.seconds * static_cast<double>(load.devices));
  return outcome;
}

}  // namespace cutout::test
