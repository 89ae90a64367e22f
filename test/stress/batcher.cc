// batcher_stress [seconds]: many threads against the batcher, with cancellations, deadlines and
// devices that fail. Says nothing and ends with 0 when all is well; built to run under sanitizers.
#include "sched/batcher.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using cutout::BatchBucket;
using cutout::Batcher;
using cutout::CancelToken;
using cutout::Clock;
using cutout::Code;
using cutout::Status;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "batcher_stress: %s\n", what);
  std::abort();
}

using Random = std::mt19937;

int total_retried = 0;  // runs that another device did after theirs was lost

int between(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

constexpr int kThreads = 8;
constexpr int kRuns = 40;

/// What fails in a round.
struct Faults {
  std::size_t devices = 1;
  bool lost = false;       // devices stop working now and then
  bool recover = false;    // and work again when they are checked
  bool reported = false;   // and others see it
  bool too_large = false;  // the largest batches do not fit into a device's memory
};

/// What a device does with a slot. Two devices may have had it, one after the other.
struct Value {
  int begun = 0;
  int ended = 0;
};

/// Devices write to the values of their slots, in plain memory, so that the thread sanitizer sees
/// who reads and writes them.
void round(Random& random, const Faults& faults) {
  std::array<Value, kThreads> values{};
  std::vector<std::atomic<int>> busy(faults.devices);
  std::vector<int> batches(faults.devices);  // of the device's thread
  std::vector<std::uint64_t> members(faults.devices);
  std::atomic<int> losses{0};
  cutout::BatchDevices devices;
  devices.count = faults.devices;
  devices.first_check = 100us;
  devices.longest_check = 1ms;
  devices.execute = [&](std::size_t device, std::size_t size, std::span<const int> slots,
                        const CancelToken& token) -> Status {
    expect(++busy[device] == 1, "two batches at a time on a device");
    expect(!slots.empty() && slots.size() <= size, "more members than the bucket holds");
    members[device] += slots.size();
    for (const int slot : slots) ++values[static_cast<std::size_t>(slot)].begun;
    std::this_thread::sleep_for(std::chrono::microseconds(20 + 10 * size));
    --busy[device];
    const int batch = ++batches[device];
    if (faults.too_large && size == 4) return {Code::kDeviceMemory, "It is too large."};
    if (faults.lost && batch % 25 == 0) {
      ++losses;
      return {Code::kDevice, "The device has stopped working."};
    }
    for (const int slot : slots) ++values[static_cast<std::size_t>(slot)].ended;
    if (batch % 17 == 0) return {Code::kInternal, "The run has failed."};
    return token.check();
  };
  if (faults.recover) {
    devices.recover = [&, checks = std::vector<int>(faults.devices)](
                          std::size_t device, const CancelToken&) mutable -> Status {
      expect(++busy[device] == 1, "a check beside a batch");
      --busy[device];
      if (++checks[device] % 3 != 0) return {Code::kDevice, "The device does not work yet."};
      return {};
    };
  }
  const std::vector<BatchBucket> buckets{{1, 30us}, {2, 40us}, {4, 60us}};
  Batcher batcher(buckets, {std::chrono::microseconds(between(random, 0, 200))}, devices);

  std::atomic<int> done{0};
  std::atomic<int> retried{0};
  std::atomic<int> no_device{0};
  const auto use = [&](int slot, std::uint32_t seed) {
    Random own(seed);
    for (int i = 0; i < kRuns; ++i) {
      std::optional<Clock::time_point> deadline;
      if (between(own, 0, 3) == 0)
        deadline = Clock::now() + std::chrono::microseconds(between(own, 0, 400));
      CancelToken token(deadline);
      std::thread canceller;
      if (between(own, 0, 3) == 0) {
        canceller = std::thread([&token, pause = between(own, 0, 200)] {
          std::this_thread::sleep_for(std::chrono::microseconds(pause));
          token.stop(Code::kCancelled);
        });
      }
      Value& value = values[static_cast<std::size_t>(slot)];
      value = {};
      Clock::duration waited{0};
      const Status status =
          batcher.run({static_cast<std::uint64_t>(slot % 3), slot}, token, waited);
      expect(waited >= Clock::duration(0), "waited less than nothing");
      expect(value.ended <= 1, "a run was done twice");
      expect(value.begun <= 2, "a run was tried more than once again");
      if (value.begun == 2 && value.ended == 1) ++retried;
      switch (status.code()) {
        case Code::kOk:
          expect(value.ended == 1, "done without a batch");
          ++done;
          break;
        case Code::kDeadline:
          expect(value.ended == 0 && deadline.has_value(),
                 "refused in a batch or without a deadline");
          break;
        case Code::kCancelled:
          // Also where all other members were cancelled and the batch ended early.
          break;
        case Code::kDevice:
          expect(losses > 0, "no device has failed");
          expect(value.ended == 0, "done, and given up");
          ++no_device;
          // Time for the checks.
          if (faults.recover) std::this_thread::sleep_for(200us);
          break;
        default:
          expect(status.code() == Code::kInternal && value.ended == 1, "another outcome");
      }
      if (canceller.joinable()) canceller.join();
      if (faults.reported && between(own, 0, 9) == 0) {
        const auto device = static_cast<std::size_t>(slot) % faults.devices;
        ++losses;
        batcher.report_loss(device, {Code::kDevice, "The device has stopped working."});
        expect(!faults.recover || !batcher.works(device) || batcher.stats()[device].losses > 0,
               "a loss was not taken note of");
      }
    }
  };
  std::vector<std::thread> threads;
  for (int slot = 0; slot < kThreads; ++slot)
    threads.emplace_back(use, slot, static_cast<std::uint32_t>(random()));
  for (std::thread& thread : threads) thread.join();

  const std::vector<cutout::DeviceWork> stats = batcher.stats();
  std::uint64_t all_losses = 0;
  for (std::size_t device = 0; device < faults.devices; ++device) {
    std::uint64_t counted = 0;
    for (std::size_t size = 0; size < stats[device].batches.size(); ++size)
      counted += size * stats[device].batches[size];
    expect(counted == members[device], "the statistics miss members");
    std::uint64_t waits = 0;
    for (const std::uint64_t waited : stats[device].waits) waits += waited;
    expect(waits == counted, "the statistics miss waits");
    all_losses += stats[device].losses;
    if (!faults.recover)
      expect(stats[device].lost.ok() == (stats[device].losses == 0), "lost, and not");
  }
  // Several may have reported the same loss.
  expect(faults.reported ? all_losses <= static_cast<std::uint64_t>(losses.load())
                         : all_losses == static_cast<std::uint64_t>(losses.load()),
         "the statistics miss losses");
  expect(faults.lost || done > 0, "nothing was done");
  expect(faults.lost || no_device == 0, "no device, and none was lost");
  if (faults.lost && faults.devices > 1 && faults.recover) {
    expect(done > 0, "nothing was done, although devices work again");
    total_retried += retried;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int seconds = count > 1 ? std::atoi(arguments[1]) : 5;
  Random random(20261123);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  do {
    round(random, {});
    round(random, {.lost = true});
    round(random, {.lost = true, .recover = true});
    round(random, {.devices = 3});
    round(random, {.devices = 3, .lost = true});
    round(random, {.devices = 3, .lost = true, .recover = true});
    round(random, {.lost = true, .recover = true, .reported = true});
    round(random, {.devices = 2, .too_large = true});
  } while (Clock::now() < end);
  expect(seconds < 2 || total_retried > 0, "no run was tried again");
  return 0;
}
