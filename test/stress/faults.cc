// faults_stress: jobs whose allocations fail, each in turn, alone and with all later ones, and
// engines whose threads do not start. Every job must end once, with its result or with
// kOutOfMemory, and later jobs must succeed. Built for the sanitizers (CMakeLists.txt),
// which detect leaks.
#include "faults/faults.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <vector>

#include "classify/features.h"
#include "core/large_memory.h"
#include "image/network_input.h"
#include "low_precision/run.h"
#include "matte/component_filter.h"
#include "pipeline/compose.h"
#include "pipeline/cpu_backend.h"
#include "png/encode.h"
#include "sched/scheduler.h"
#include "stress/low_precision_programs.h"

namespace {

using namespace cutout;
using test::Failing;

/// Needs no memory.
void expect(bool condition, const char* what, const char* of = "") {
  if (condition) return;
  std::fprintf(stderr, "faults_stress: %s%s\n", of, what);
  std::abort();
}

constexpr int kWidth = 150;
constexpr int kHeight = 90;
constexpr int kSide = 40;

std::vector<std::uint8_t> image() {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kWidth * kHeight) * 4);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::uint8_t>(i % 4 == 3 ? 255 - i / 4 % 2 : i * 7919 >> 5);
  }
  return pixels;
}

ImageView view_of(std::vector<std::uint8_t>& pixels) {
  return {pixels.data(), kWidth, kHeight, kWidth * 4L};
}

std::vector<float> soft_edge() {
  std::vector<float> alpha(kSide * kSide);
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    alpha[i] = static_cast<float>(i % kSide) / kSide + (i % 37 == 0 ? 0.3F : 0.0F);
    alpha[i] = alpha[i] < 1 ? alpha[i] : 1;
  }
  return alpha;
}

/// The pixel work of a matte.
Status refine(std::vector<std::uint8_t>& pixels, ThreadPool& pool) {
  const NetworkInput spec{kSide, kSide, {120, 120, 120}, {60, 60, 60}};
  std::vector<float> input(3 * kSide * kSide);
  fill_network_input(view_of(pixels), spec, input.data(), pool);
  std::vector<float> alpha = soft_edge();
  filter_components(alpha, kSide, {0, 0, kSide, kSide}, pool);
  const Prediction prediction{host_tensor(alpha, 1, kSide, kSide),
                              host_tensor(input, 3, kSide, kSide), spec};
  MatteSummary summary;
  return solve_matte(view_of(pixels), {0, 0, kWidth, kHeight}, prediction, pool)
      ->write({0, 0, kWidth, kHeight}, HiddenColour::kClear, summary);
}

Status compose_canvas(std::vector<std::uint8_t>& pixels, ThreadPool& pool) {
  ComposePlan plan;
  plan.width = kWidth;
  plan.height = kHeight;
  plan.source = {3, 4, kWidth / 2, kHeight / 2};
  plan.target = {10, 10, kWidth - 20, kHeight - 20};
  plan.shadow = DropShadow{0.5F, 3, 2, 2, 0};
  plan.colour = {1, 2, 3, 255};
  (void)compose(pixels, kWidth, plan, pool);
  return {};
}

Status find_features(ThreadPool& pool) {
  const DetectorShape shape{3, 16, 4, 8};
  const std::vector<float> heatmaps(3 * 16 * 16, 0.25F);
  const std::vector<float> feature_maps(4 * 8 * 8, 1.0F);
  const std::vector<float> planes(3 * 64 * 64, 100.0F);
  const ImageStatistics image{{}, make_thumbnail(planes, 64)};
  const std::vector<float> alpha = soft_edge();
  std::vector<float> features(feature_count(shape));
  join_features(shape, heatmaps, feature_maps, image, {alpha, kSide, kSide}, pool, features);
  return {};
}

Status use_memory() {
  LargeMemory memory;
  std::vector<void*> held;
  held.reserve(6);
  for (std::size_t i = 0; i < 6; ++i) {
    if (void* const block = memory.allocate((i + 1) * 100'000)) held.push_back(block);
  }
  for (std::size_t i = 0; i < held.size(); i += 2) memory.free(held[i]);
  for (std::size_t i = 1; i < held.size(); i += 2) memory.free(held[i]);
  memory.release_cached();
  expect(memory.cached_bytes() == 0, "network memory is left over");
  return held.size() == 6 ? Status() : Status(Code::kOutOfMemory);
}

const test::ProgramData& program_data() {
  static const test::ProgramData data = [] {
    std::mt19937 random(3);
    return test::ProgramGenerator(random).make(10);
  }();
  return data;
}

/// Reads, plans and runs a program of 8-bit operations.
Status run_program(const test::ProgramData& data, const CancelToken& token, ThreadPool& pool) {
  constexpr int kWide = 40;
  constexpr int kHigh = 30;
  low_precision::Program program;
  CUTOUT_RETURN_IF_ERROR(data.read(program));
  low_precision::Plan plan;
  CUTOUT_RETURN_IF_ERROR(low_precision::Plan::make(program, kWide, kHigh, plan));
  const std::vector<float> input(3 * kWide * kHigh, 0.25F);
  std::vector<std::vector<float>> outputs(2);
  const std::vector<std::string> kernels = low_precision::kernels().int8;
  const low_precision::Kernel kernel = kernels.empty() ? low_precision::Kernel{&test::conv_scalar}
                                                       : low_precision::kernel_for(kernels.front());
  const std::size_t bytes = low_precision::bytes_of_run(program, plan, kernel);
  std::vector<std::uint8_t> memory(bytes + low_precision::Plan::kAlignment);
  void* aligned = memory.data();
  std::size_t room = memory.size();
  std::align(low_precision::Plan::kAlignment, bytes, aligned, room);
  low_precision::RunBuffers buffers{input, {}, {static_cast<std::uint8_t*>(aligned), bytes}};
  const low_precision::Map last = plan.map(program.operations().back().inputs.front(), nullptr);
  for (const int channels : {1, last.channels}) {
    auto& output = outputs[buffers.outputs.size()];
    output.resize(static_cast<std::size_t>(channels * last.width * last.height));
    buffers.outputs.emplace_back(output);
  }
  const low_precision::Parallel parallel = [&pool](std::size_t count,
                                                   const std::function<void(std::size_t)>& work) {
    pool.parallel_for(count, 1, [&work](std::size_t first, std::size_t end) {
      for (std::size_t part = first; part < end; ++part) work(part);
    });
  };
  return low_precision::run(program, plan, kernel, buffers, parallel, &token);
}

using Work = std::function<Status(const CancelToken&, ThreadPool&)>;

struct Named {
  const char* name;
  Executor executor;
  Work work;
};

const std::vector<Named>& all_work() {
  static const std::vector<Named> work{
      {"refinement", Executor::kNetwork,
       [](const CancelToken&, ThreadPool& pool) {
         std::vector<std::uint8_t> pixels = image();
         return refine(pixels, pool);
       }},
      {"canvas", Executor::kPixels,
       [](const CancelToken&, ThreadPool& pool) {
         std::vector<std::uint8_t> pixels = image();
         return compose_canvas(pixels, pool);
       }},
      {"PNG", Executor::kPixels,
       [](const CancelToken&, ThreadPool& pool) {
         std::vector<std::uint8_t> pixels = image();
         (void)encode_png(view_of(pixels), {}, pool);
         return Status();
       }},
      {"features", Executor::kNetwork,
       [](const CancelToken&, ThreadPool& pool) { return find_features(pool); }},
      {"8-bit program", Executor::kNetwork,
       [](const CancelToken& token, ThreadPool& pool) {
         return run_program(program_data(), token, pool);
       }},
      {"network memory", Executor::kPixels,
       [](const CancelToken&, ThreadPool&) { return use_memory(); }},
  };
  return work;
}

/// Queues one job after arm() and waits until it has ended; an exception of push() is an end too.
Code run(
    Scheduler& scheduler, const Named& named, const std::function<void()>& arm = [] {}) {
  std::atomic<int> ends{0};
  std::promise<Code> ended;
  std::future<Code> end = ended.get_future();
  arm();
  try {
    Job job;
    job.executor = named.executor;
    job.work = [&scheduler, &named](int, const CancelToken& token) {
      return named.work(token, scheduler.pool());
    };
    job.done = [&ends, &ended](const Status& status) {
      expect(++ends == 1, "done() twice");
      ended.set_value(status.code());
    };
    const Status status = scheduler.push(std::move(job));
    if (!status.ok()) return status.code();
  } catch (const std::bad_alloc&) {
    expect(ends == 0, "done() although push() threw");
    return Code::kOutOfMemory;
  }
  return end.get();
}

void refuse_memory(const Named& named) {
  Scheduler scheduler(2, 3, 4);
  std::int64_t refused = 0;
  for (const Failing failing : {Failing::kOne, Failing::kRest}) {
    for (std::int64_t which = 0;; ++which) {
      const Code code = run(scheduler, named, [&] { test::fail_allocation(which, failing); });
      const std::int64_t seen = test::fail_nothing();
      expect(code == Code::kOk || code == Code::kOutOfMemory, " ended with another error",
             named.name);
      refused += code == Code::kOutOfMemory ? 1 : 0;
      if (seen <= which) break;  // no allocation was left to fail
      if (which % 16 == 0) expect(run(scheduler, named) == Code::kOk, "the next job failed");
    }
  }
  expect(refused > 0, " never ran out of memory", named.name);
  expect(run(scheduler, named) == Code::kOk, " fails with memory", named.name);
  scheduler.close(std::chrono::milliseconds(0));
  const SchedulerStats stats = scheduler.stats();
  expect(stats.queued == 0 && stats.running == 0, "jobs are left after close()");
}

/// Queues with jobs that are closed and cancelled while every allocation fails.
void close_without_memory() {
  for (int round = 0; round < 50; ++round) {
    Scheduler scheduler(1, 1, 20);
    std::atomic<int> ended{0};
    int accepted = 0;
    for (std::uint64_t id = 0; id < 20; ++id) {
      Job job;
      job.id = id;
      job.executor = id % 2 == 0 ? Executor::kNetwork : Executor::kPixels;
      job.work = [](int, const CancelToken& token) -> Status {
        while (!token.stopped()) std::this_thread::yield();
        return token.check();
      };
      job.done = [&ended](const Status& status) {
        expect(!status.ok() && status.message()[0] != 0, "a job that was stopped succeeded");
        ++ended;
      };
      if (scheduler.push(std::move(job)).ok()) ++accepted;
    }
    test::fail_allocation(0, Failing::kRest);
    for (const std::uint64_t id : {0, 5, 6, 19}) scheduler.cancel(id);
    scheduler.close(std::chrono::milliseconds(round % 3));
    test::fail_nothing();
    expect(ended == accepted, "a job never ended");
  }
}

void refuse_threads() {
  constexpr int kThreads = 5;
  for (const Failing failing : {Failing::kOne, Failing::kRest}) {
    for (int which = 0; which < kThreads; ++which) {
      test::fail_thread(which, failing);
      bool thrown = false;
      try {
        const Scheduler scheduler(2, 3, 0);
      } catch (const std::system_error&) {
        thrown = true;
      }
      test::fail_nothing();
      expect(thrown, "a scheduler without all of its threads");
    }
  }
  const Scheduler scheduler(2, 3, 0);
}

}  // namespace

int main() {
  static_cast<void>(program_data());  // made while nothing fails
  for (const Named& named : all_work()) refuse_memory(named);
  close_without_memory();
  refuse_threads();
  std::puts("every fault was reported");
}
