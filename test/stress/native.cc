// native_stress [seconds]: many threads against the thread pool, the scheduler, the memory of the
// networks and the kernels. Says nothing and ends with 0 when all is well; built to run under
// sanitizers
// (-DCUTOUT_SANITIZE=thread | address | undefined).
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "image/network_input.h"
#include "image/resample.h"
#include "pipeline/cpu_backend.h"
#include "png/encode.h"
#include "sched/scheduler.h"

namespace {

using namespace std::chrono_literals;
using cutout::CancelToken;
using cutout::Clock;
using cutout::Code;
using cutout::Executor;
using cutout::Job;
using cutout::Scheduler;
using cutout::Status;
using cutout::ThreadPool;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "native_stress: %s\n", what);
  std::abort();
}

using Random = std::mt19937;

int between(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// Every index once, whichever thread calls, pool threads included.
void pool_round(Random& random) {
  ThreadPool pool(between(random, 0, 4));
  const auto count = static_cast<std::size_t>(between(random, 0, 5000));
  const auto grain = static_cast<std::size_t>(between(random, 0, 700));
  std::atomic<std::size_t> sum{0};
  const auto loop = [&] {
    std::vector<int> seen(count, 0);
    pool.parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) ++seen[i];
    });
    for (const int times : seen) expect(times == 1, "parallel_for missed or repeated an index");
    sum += count;
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(loop);
  for (int i = 0; i < 3; ++i) pool.submit(loop);
  for (std::thread& caller : callers) caller.join();
}

std::vector<std::uint8_t> random_image(Random& random, int width, int height) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) * height * 4);
  for (std::uint8_t& byte : pixels) byte = static_cast<std::uint8_t>(random());
  return pixels;
}

/// The steps of a matte around a network, on one image; the same bytes for every pool.
std::vector<std::uint8_t> cut_out(std::uint32_t seed, ThreadPool& pool) {
  Random random(seed);
  const int width = between(random, 1, 180);
  const int height = between(random, 1, 140);
  std::vector<std::uint8_t> pixels = random_image(random, width, height);
  const cutout::ImageView view{pixels.data(), width, height, width * 4L};
  const cutout::NetworkInput input{48, 40, {128, 128, 128}, {256, 256, 256}};
  std::vector<float> planes(static_cast<std::size_t>(3 * input.width * input.height));
  cutout::fill_network_input(view, input, planes.data(), pool);
  for (float& value : planes) value += 0.5F;
  const int to_width = between(random, 1, width);
  const int to_height = between(random, 1, height);
  cutout::reduce_in_place(view, to_width, to_height, pool);
  const cutout::ImageView reduced{pixels.data(), to_width, to_height, to_width * 4L};
  const cutout::Box whole{0, 0, to_width, to_height};
  const auto plane = static_cast<std::size_t>(input.width * input.height);
  std::vector<float> alpha(planes.begin(), planes.begin() + static_cast<std::ptrdiff_t>(plane));
  for (float& value : alpha) value = std::clamp(value, 0.0F, 1.0F);
  const cutout::Prediction prediction{cutout::host_tensor(alpha, 1, input.height, input.width),
                                      cutout::host_tensor(planes, 3, input.height, input.width),
                                      input};
  cutout::MatteSummary summary;
  expect(cutout::solve_matte(reduced, whole, prediction, pool)
             ->write(whole, cutout::HiddenColour::kClear, summary)
             .ok(),
         "the matte was not written");
  const cutout::PngOptions options{between(random, 0, 1) == 0, between(random, 1, 9), {}, {}};
  return cutout::encode_png(reduced, options, pool);
}

void kernel_round(Random& random) {
  const auto seed = static_cast<std::uint32_t>(random());
  ThreadPool alone(0);
  ThreadPool many(3);
  const std::vector<std::uint8_t> wanted = cut_out(seed, alone);
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back(
        [&] { expect(cut_out(seed, many) == wanted, "the result depends on threads"); });
  }
  for (std::thread& caller : callers) caller.join();
}

/// Loops and kernels of jobs that are stopped at any moment, beside each other on one pool: no
/// index twice, and none after the loop has returned.
void stopped_round(Random& random) {
  ThreadPool shared(between(random, 0, 3));
  const auto job = [&shared](std::uint32_t seed) {
    Random own(seed);
    CancelToken token;
    ThreadPool pool(shared, token);
    std::thread stopper([&token, delay = between(own, 0, 300)] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      token.stop(Code::kCancelled);
    });
    const auto count = static_cast<std::size_t>(between(own, 1, 5000));
    std::vector<int> seen(count, 0);
    const Status loop = cutout::caught([&]() -> Status {
      pool.parallel_for(count, static_cast<std::size_t>(between(own, 1, 50)),
                        [&](std::size_t begin, std::size_t end) {
                          for (std::size_t i = begin; i < end; ++i) ++seen[i];
                        });
      return {};
    });
    const std::vector<int> then = seen;
    for (const int times : seen) expect(times <= 1, "a stopped loop repeated an index");
    if (loop.ok()) {
      for (const int times : seen)
        expect(times == 1, "a loop that was not stopped missed an index");
    }
    const Status kernels = cutout::caught([&]() -> Status {
      cut_out(seed, pool);
      return {};
    });
    for (const Status& status : {loop, kernels})
      expect(status.ok() || status.code() == Code::kCancelled, "a stopped job has another reason");
    stopper.join();
    expect(!cutout::caught([&]() -> Status {
              pool.parallel_for(1, 1, [](std::size_t, std::size_t) {});
              return {};
            }).ok(),
           "a loop began after its job was stopped");
    expect(seen == then, "a stopped loop went on");
  };
  std::vector<std::thread> jobs;
  for (int i = 0; i < 3; ++i) jobs.emplace_back(job, static_cast<std::uint32_t>(random()));
  for (std::thread& each : jobs) each.join();
}

/// Jobs of every kind from several threads, cancelled and closed at random moments: each ends
/// exactly once, with the outcome the counters say.
void scheduler_round(Random& random) {
  constexpr int kProducers = 3;
  constexpr int kJobs = 60;
  std::atomic<int> accepted{0};
  std::atomic<int> ended{0};
  std::atomic<int> idle{0};
  std::array<std::atomic<int>, 4> busy{};  // per worker
  Scheduler scheduler(between(random, 1, 4), between(random, 1, 3), between(random, 0, 40),
                      {1ms, [&idle] { ++idle; }});
  const auto produce = [&](std::uint32_t seed, std::uint64_t first_id) {
    Random own(seed);
    for (std::uint64_t id = first_id; id < first_id + kJobs; ++id) {
      Job job;
      job.id = id;
      job.executor = between(own, 0, 2) == 0 ? Executor::kPixels : Executor::kNetwork;
      const int turns = between(own, 0, 30);
      job.work = [&, turns](int worker, const CancelToken& token) -> Status {
        if (worker >= 0) expect(++busy[static_cast<std::size_t>(worker)] == 1, "a worker twice");
        std::atomic<int> interrupted{0};
        const std::stop_callback note(token.stop_token(), [&interrupted] { ++interrupted; });
        Status status;
        for (int turn = 0; turn < turns && status.ok() && interrupted == 0; ++turn) {
          scheduler.pool().parallel_for(64, 8, [](std::size_t, std::size_t) {});
          status = token.check();
        }
        if (worker >= 0) --busy[static_cast<std::size_t>(worker)];
        return status;
      };
      const auto calls = std::make_shared<std::atomic<int>>(0);
      job.done = [&ended, calls](Status) {
        expect(++*calls == 1, "done() twice");
        ++ended;
      };
      if (const Status status = scheduler.push(std::move(job)); status.ok()) {
        ++accepted;
      } else {
        expect(status.code() == Code::kQueueFull || status.code() == Code::kClosed,
               "push refused for another reason");
      }
      if (between(own, 0, 4) == 0)
        scheduler.cancel(first_id + static_cast<std::uint64_t>(between(own, 0, kJobs)));
      if (between(own, 0, 3) == 0) std::this_thread::sleep_for(100us);
      static_cast<void>(scheduler.stats());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kProducers; ++i) {
    threads.emplace_back(produce, static_cast<std::uint32_t>(random()),
                         1000U * static_cast<unsigned>(i));
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(
        [&scheduler, delay = between(random, 0, 20), grace = between(random, 0, 10)] {
          std::this_thread::sleep_for(std::chrono::milliseconds(delay));
          scheduler.close(std::chrono::milliseconds(grace));
        });
  }
  for (std::thread& thread : threads) thread.join();
  scheduler.close(0ms);
  const cutout::SchedulerStats stats = scheduler.stats();
  expect(accepted == ended, "a job never ended");
  expect(stats.queued == 0 && stats.running == 0, "jobs are left after close");
  expect(stats.done + stats.failed + stats.cancelled == ended, "the counters do not add up");
}

/// Blocks of all sizes from several threads: aligned, whole, never shared.
void memory_round(Random& random) {
  cutout::LargeMemory memory;
  const auto use = [&memory](std::uint32_t seed) {
    Random own(seed);
    struct Held {
      std::uint8_t* data;
      std::size_t bytes;
      std::uint8_t mark;
    };
    std::vector<Held> held;
    for (int i = 0; i < 60; ++i) {
      if (held.size() < 8) {
        const auto bytes = static_cast<std::size_t>(between(own, 0, 1 << between(own, 4, 22)));
        auto* const data = static_cast<std::uint8_t*>(memory.allocate(bytes));
        expect(data != nullptr, "no memory");
        expect(reinterpret_cast<std::uintptr_t>(data) % cutout::LargeMemory::kAlignment == 0,
               "not aligned");
        const auto mark = static_cast<std::uint8_t>(own());
        std::memset(data, mark, bytes);
        held.push_back({data, bytes, mark});
      }
      if (between(own, 0, 1) == 0) {
        const Held block = held.back();
        held.pop_back();
        for (std::size_t at = 0; at < block.bytes; at += 97) {
          expect(block.data[at] == block.mark, "memory was given out twice");
        }
        memory.free(block.data);
      }
      if (between(own, 0, 20) == 0) memory.release_cached();
    }
    for (const Held& block : held) memory.free(block.data);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(use, static_cast<std::uint32_t>(random()));
  for (std::thread& thread : threads) thread.join();
  memory.free(nullptr);
  memory.release_cached();
  expect(memory.cached_bytes() == 0, "release_cached left something");
}

}  // namespace

int main(int count, char** arguments) {
  const int seconds = count > 1 ? std::atoi(arguments[1]) : 5;
  Random random(20260101);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  do {
    pool_round(random);
    scheduler_round(random);
    memory_round(random);
    kernel_round(random);
    stopped_round(random);
  } while (Clock::now() < end);
  return 0;
}
