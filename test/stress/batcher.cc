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

int between(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

constexpr int kThreads = 8;
constexpr int kRuns = 40;

/// The device adds one to the value of each slot, in plain memory, so that the thread sanitizer
/// sees who reads and writes it.
void round(Random& random, bool device_fails) {
  std::array<int, kThreads> values{};
  std::atomic<int> busy{0};
  std::atomic<int> members{0};
  int batches = 0;  // of the batcher's thread
  const auto execute = [&](std::size_t size, std::span<const int> slots,
                           const CancelToken& token) -> Status {
    expect(++busy == 1, "two batches at a time");
    expect(!slots.empty() && slots.size() <= size, "more members than the bucket holds");
    members += static_cast<int>(slots.size());
    for (const int slot : slots) ++values[static_cast<std::size_t>(slot)];
    std::this_thread::sleep_for(std::chrono::microseconds(20 + 10 * size));
    --busy;
    ++batches;
    if (device_fails && batches == 25) return {Code::kDevice, "The device has stopped working."};
    if (batches % 17 == 0) return {Code::kInternal, "The run has failed."};
    return token.check();
  };
  const std::vector<BatchBucket> buckets{{1, 30us}, {2, 40us}, {4, 60us}};
  Batcher batcher(buckets, {std::chrono::microseconds(between(random, 0, 200))}, execute);

  std::atomic<int> done{0};
  std::atomic<int> refused{0};
  const auto use = [&](int slot, std::uint32_t seed) {
    Random own(seed);
    bool lost = false;
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
      int& value = values[static_cast<std::size_t>(slot)];
      value = 0;
      Clock::duration waited{0};
      const Status status =
          batcher.run({static_cast<std::uint64_t>(slot % 3), slot}, token, waited);
      expect(waited >= Clock::duration(0), "waited less than nothing");
      expect(value == 0 || value == 1, "a run was in two batches");
      expect(!lost || !status.ok(), "a lost device has run");
      switch (status.code()) {
        case Code::kOk:
          expect(value == 1, "done without a batch");
          ++done;
          break;
        case Code::kDeadline:
          expect(value == 0 && deadline.has_value(), "refused in a batch or without a deadline");
          ++refused;
          break;
        case Code::kCancelled:
          // Also where all other members were cancelled and the batch ended early.
          break;
        case Code::kDevice:
          expect(device_fails, "no device has failed");
          lost = true;
          break;
        default:
          expect(status.code() == Code::kInternal && value == 1, "another outcome");
      }
      if (canceller.joinable()) canceller.join();
    }
  };
  std::vector<std::thread> threads;
  for (int slot = 0; slot < kThreads; ++slot)
    threads.emplace_back(use, slot, static_cast<std::uint32_t>(random()));
  for (std::thread& thread : threads) thread.join();

  const cutout::BatcherStats stats = batcher.stats();
  std::uint64_t counted = 0;
  for (std::size_t size = 0; size < stats.batches.size(); ++size)
    counted += size * stats.batches[size];
  expect(counted == static_cast<std::uint64_t>(members.load()), "the statistics miss members");
  expect(device_fails || done > 0, "nothing was done");
}

}  // namespace

int main(int count, char** arguments) {
  const int seconds = count > 1 ? std::atoi(arguments[1]) : 5;
  Random random(20261123);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  do {
    round(random, false);
    round(random, true);
  } while (Clock::now() < end);
  return 0;
}
