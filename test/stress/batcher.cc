// batcher_stress [seconds]: many threads against the batcher, with cancellations and
// a device that fails. Says nothing and ends with 0 when all is well; built to run under
// sanitizers.
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

int total_retried = 0;  // runs that were done in a smaller batch

int between(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

constexpr int kThreads = 8;
constexpr int kRuns = 40;

/// What fails in a round.
struct Faults {
  bool lost = false;       // the device stops working now and then
  bool recover = false;    // and works again when it is checked
  bool reported = false;   // and others see it
  bool too_large = false;  // the largest batches do not fit into its memory
};

/// What the device does with a slot. Two batches may have had it, one after the other.
struct Value {
  int begun = 0;
  int ended = 0;
};

/// The device writes to the values of its slots, in plain memory, so that the thread sanitizer sees
/// who reads and writes them.
void round(Random& random, const Faults& faults) {
  std::array<Value, kThreads> values{};
  std::atomic<int> busy{0};
  int batches = 0;  // these two are of the batcher's thread
  std::uint64_t members = 0;
  std::atomic<int> losses{0};
  cutout::BatchDevice device;
  device.first_check = 100us;
  device.longest_check = 1ms;
  device.execute = [&](std::size_t size, std::span<const int> slots,
                       const CancelToken& token) -> Status {
    expect(++busy == 1, "two batches at a time");
    expect(!slots.empty() && slots.size() <= size, "more members than the bucket holds");
    members += slots.size();
    for (const int slot : slots) ++values[static_cast<std::size_t>(slot)].begun;
    std::this_thread::sleep_for(std::chrono::microseconds(20 + 10 * size));
    --busy;
    ++batches;
    if (faults.too_large && size == 4) return {Code::kDeviceMemory, "It is too large."};
    if (faults.lost && batches % 25 == 0) {
      ++losses;
      return {Code::kDevice, "The device has stopped working."};
    }
    for (const int slot : slots) ++values[static_cast<std::size_t>(slot)].ended;
    if (batches % 17 == 0) return {Code::kInternal, "The run has failed."};
    return token.check();
  };
  if (faults.recover) {
    device.recover = [&, checks = 0](const CancelToken&) mutable -> Status {
      expect(++busy == 1, "a check beside a batch");
      --busy;
      if (++checks % 3 != 0) return {Code::kDevice, "The device does not work yet."};
      return {};
    };
  }
  const std::vector<BatchBucket> buckets{{1, 30us}, {2, 40us}, {4, 60us}};
  Batcher batcher(buckets, std::chrono::microseconds(between(random, 0, 200)), device);

  std::atomic<int> done{0};
  std::atomic<int> retried{0};
  std::atomic<int> no_device{0};
  const auto use = [&](int slot, std::uint32_t seed) {
    Random own(seed);
    for (int i = 0; i < kRuns; ++i) {
      CancelToken token;
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
      const Status status = batcher.run(slot, token, waited);
      expect(waited >= Clock::duration(0), "waited less than nothing");
      expect(value.ended <= 1, "a run was done twice");
      expect(value.begun <= (faults.too_large ? 2 : 1), "a run was tried again");
      if (value.begun == 2 && value.ended == 1) ++retried;
      switch (status.code()) {
        case Code::kOk:
          expect(value.ended == 1, "done without a batch");
          ++done;
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
        ++losses;
        batcher.report_loss({Code::kDevice, "The device has stopped working."});
        expect(!batcher.works() || batcher.stats().losses > 0, "a loss was not taken note of");
      }
    }
  };
  std::vector<std::thread> threads;
  for (int slot = 0; slot < kThreads; ++slot)
    threads.emplace_back(use, slot, static_cast<std::uint32_t>(random()));
  for (std::thread& thread : threads) thread.join();

  const cutout::DeviceWork stats = batcher.stats();
  std::uint64_t counted = 0;
  for (std::size_t size = 0; size < stats.batches.size(); ++size)
    counted += size * stats.batches[size];
  expect(counted == members, "the statistics miss members");
  std::uint64_t waits = 0;
  for (const std::uint64_t waited : stats.waits) waits += waited;
  expect(waits == counted, "the statistics miss waits");
  if (!faults.recover) expect(stats.lost.ok() == (stats.losses == 0), "lost, and not");
  // Several may have reported the same loss.
  const auto all_losses = static_cast<std::uint64_t>(losses.load());
  expect(faults.reported ? stats.losses <= all_losses : stats.losses == all_losses,
         "the statistics miss losses");
  expect(faults.lost || no_device == 0, "no device, and it was not lost");
  // A device that fails for good may do so before the first run is done.
  expect((faults.lost && !faults.recover) || done > 0, "nothing was done");
  total_retried += retried;
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
    round(random, {.lost = true, .recover = true, .reported = true});
    round(random, {.too_large = true});
  } while (Clock::now() < end);
  expect(seconds < 2 || total_retried > 0, "no run was tried again");
  return 0;
}
