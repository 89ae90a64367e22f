#include "sched/simulation.h"

#include <algorithm>
#include <random>

#include "sched/batch_queue.h"

namespace cutout::test {

namespace {

using Time = Clock::time_point;

/// A device, what runs on it, and how many runs it was given that are not answered.
struct Device {
  explicit Device(const Load& load) : queue(load.buckets, load.max_delay) {}

  BatchQueue queue;
  std::optional<Time> end;  // of the batch in progress
  std::optional<Time> wake;
  std::size_t runs = 0;
};

}  // namespace

Outcome simulate(const Load& load) {
  std::mt19937_64 random(load.seed);
  std::exponential_distribution<double> gap(load.runs_per_second);
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
      if (device.end) now = std::min(now, *device.end);
    }

    for (Device& device : devices) {
      if (!device.end || *device.end > now) continue;
      device.end.reset();
      for (const std::uint64_t id : device.queue.finish().runs) {
        outcome.milliseconds.push_back(milliseconds(arrivals[id], now));
        --device.runs;
      }
      last_answer = now;
    }
    if (arrivals.size() < load.runs && next_arrival <= now) {
      Device& least = *std::ranges::min_element(devices, {}, &Device::runs);
      // Devices are never lost here, so that push() takes everything.
      if (least.queue.push({arrivals.size(), now})) ++least.runs;
      arrivals.push_back(now);
      const std::chrono::duration<double> seconds(gap(random));
      next_arrival = now + std::chrono::duration_cast<Clock::duration>(seconds);
    }
    for (Device& device : devices) {
      if (device.end) continue;
      const BatchQueue::Step step = device.queue.next(now);
      device.wake = step.wake;
      if (step.members.empty()) continue;
      const Clock::duration latency = load.buckets[step.bucket].latency;
      ++outcome.batches[step.bucket];
      outcome.members[step.bucket] += step.members.size();
      busy += latency;
      device.end = now + latency;
    }
  }
  outcome.seconds = std::chrono::duration<double>(last_answer - Time{}).count();
  outcome.busy = std::chrono::duration<double>(busy).count() /
                 (outcome.seconds * static_cast<double>(load.devices));
  return outcome;
}

}  // namespace cutout::test
