// device_stress [jobs [libcutout_cuda.so]]: random mattes by the backend of a device, against the
// CPU's, under the host executor; jobs that end between two steps and in the middle of one, jobs on
// several threads, and jobs in which each call of the device fails in turn. With a library the jobs
// run on a GPU too, if there is one. Built for the sanitizers (CMakeLists.txt).
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cuda/library.h"
#include "native/backend_contract.h"
#include "pipeline/cpu_backend.h"
#include "pipeline/device_backend.h"
#include "pipeline/edge_runs.h"
#include "stress/device/host_device.h"
#include "stress/device/job.h"

using namespace cutout;
using namespace cutout::test;

namespace {

constexpr std::size_t kForFew = 1000;  // so that constants of small images do not fit one block

void fail(const char* what, unsigned seed, const char* message) {
  std::fprintf(stderr, "%s, job %u: %s\n", what, seed, message);
  std::exit(1);
}

ThreadPool& pool() {
  static ThreadPool instance(1);
  return instance;
}

DeviceResult by_cpu(const DeviceJob& job, unsigned seed) {
  DeviceResult result;
  const Status status = run_job(*make_cpu_backend(pool()), job, result);
  if (!status.ok()) fail("the CPU", seed, status.message());
  return result;
}

/// Runs a job on a device and ends the program if its result is not the CPU's.
void expect_cpu(Device& device, const DeviceJob& job, unsigned seed, const char* what) {
  DeviceResult result;
  const Status status = run_job(*make_device_backend(device, pool()), job, result);
  if (!status.ok()) fail(what, seed, status.message());
  if (!result.same_as(by_cpu(job, seed))) fail(what, seed, "the result is not the CPU's");
}

void contract(Device& device, const ContractLimits& limits) {
  for (const std::string& fault : contract_faults(*make_device_backend(device, pool()), limits))
    fail("contract", 0, fault.c_str());
}

void like_the_cpu(Device& device, unsigned jobs) {
  for (unsigned seed = 0; seed < jobs; ++seed) expect_cpu(device, DeviceJob(seed), seed, "alone");
}

/// The host as a device.
struct Host {
  Device device{host_device(), 0, nullptr, kForFew};

  /// Nothing is held any longer.
  void expect_idle(unsigned seed) const {
    if (device.stats().used_bytes != 0) fail("memory", seed, "a job that has ended uses some");
    if (queued_on_host_device() != 0)
      fail("work", seed, "a job that has ended left some in a queue");
  }
};

void expect_nothing_held(const char* what) {
  if (held_by_host_device() != 0) fail(what, 0, "memory or a stream of the device is leaked");
}

void cancelled(unsigned jobs) {
  Host host;
  for (unsigned seed = 0; seed < jobs; ++seed) {
    const DeviceJob job(seed);
    int steps = 0;
    const auto ends = [&] {
      DeviceResult result;
      return !run_job(*make_device_backend(host.device, pool()), job, result, steps).ok();
    };
    for (; ends(); ++steps) host.expect_idle(seed);
    if (steps != 11) fail("cancelled", seed, "the job has another number of steps");
    expect_cpu(host.device, job, seed, "after one that was cancelled");
  }
}

/// Jobs that end between two steps while what they queued is done at any time, beside others that
/// take the memory that they leave.
void dropped(unsigned jobs) {
  Host host;
  for (unsigned seed = 0; seed < jobs; ++seed) {
    const DeviceJob job(seed);
    for (int steps = 1; steps <= 10; ++steps) {
      DeviceResult ignored;
      const std::unique_ptr<Backend> left = make_device_backend(host.device, pool());
      if (run_job(*left, job, ignored, steps).code() != Code::kCancelled)
        fail("dropped", seed, "it was not");
      // Of the same sizes, and of others.
      expect_cpu(host.device, job, seed, "beside a dropped one");
      expect_cpu(host.device, DeviceJob(seed + 1), seed + 1, "beside a dropped one");
    }
    host.expect_idle(seed);
  }
}

/// Ends jobs at each eighth of their time, in the middle of a step: each has its result or the
/// token's code, and holds nothing afterwards.
void stopped(unsigned jobs) {
  Host host;
  const auto run = [&](const DeviceJob& job, bool on_device, const CancelToken& token,
                       DeviceResult& result) {
    ThreadPool own(pool(), token);
    const std::unique_ptr<Backend> backend =
        on_device ? make_device_backend(host.device, own) : make_cpu_backend(own);
    return caught([&] { return run_job(*backend, job, result); });
  };
  for (unsigned seed = 0; seed < jobs; ++seed) {
    const DeviceJob job(seed);
    for (const bool on_device : {false, true}) {
      DeviceResult right;
      const Clock::time_point start = Clock::now();
      if (!run(job, on_device, CancelToken(), right).ok()) fail("stopped", seed, "it fails alone");
      const Clock::duration whole = Clock::now() - start;
      for (int eighth = 0; eighth < 8; ++eighth) {
        DeviceResult result;
        CancelToken token;
        if (eighth == 0) token.stop(Code::kCancelled);
        const std::jthread stopping([&, end = Clock::now() + whole * eighth / 8] {
          std::this_thread::sleep_until(end);
          token.stop(Code::kCancelled);
        });
        const Status status = run(job, on_device, token, result);
        if (status.ok() ? eighth == 0 || !result.same_as(right)
                        : status.code() != Code::kCancelled) {
          fail("stopped", seed, status.ok() ? "another result" : status.message());
        }
        host.expect_idle(seed);
      }
    }
  }
}

void side_by_side(unsigned jobs) {
  constexpr unsigned kThreads = 4;
  Host host;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&host, thread, jobs] {
      for (unsigned seed = thread; seed < jobs; seed += kThreads) {
        expect_cpu(host.device, DeviceJob(seed), seed, "beside others");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (host.device.stats().streams > kThreads) fail("beside others", 0, "too many streams");
}

/// Memory is allocated once for jobs of one size.
void reused() {
  Host host;
  const DeviceJob job(3);
  expect_cpu(host.device, job, 3, "first");
  const DeviceStats first = host.device.stats();
  for (int i = 0; i < 3; ++i) expect_cpu(host.device, job, 3, "again");
  const DeviceStats again = host.device.stats();
  if (again.allocations != first.allocations || again.streams != 1)
    fail("reused", 3, "a job like the one before allocates memory");
  if (first.kept_bytes == 0 || first.used_bytes != 0) fail("reused", 3, "the counts are wrong");
  host.device.release_kept();
  if (host.device.stats().kept_bytes != 0) fail("reused", 3, "memory is kept after release_kept");
}

/// A mask goes to the device once, and no plane of the output leaves it.
void copied_once() {
  Host host;
  constexpr int kWidth = 301;
  constexpr int kHeight = 200;
  const std::vector<std::uint8_t> values(256 * 256, 255);
  const PlacedMask mask{{values, 256, 256}, 900, 600, {100, 50, 602, 400}};
  Tensor p;
  const std::unique_ptr<Backend> backend = make_device_backend(host.device, pool());
  if (!backend->allocate(1, kHeight, kWidth, p).ok() ||
      !backend->upload(std::vector<float>(p.view.size(), 0.5F), p.view).ok()) {
    fail("copies", 0, "there is no tensor");
  }
  const HostCopies before = copied_by_host_device();
  const Status found = backend->filter_components(p.view, {0, 0, kWidth, kHeight}, mask);
  if (!found.ok()) fail("copies", 0, found.message());
  const HostCopies after = copied_by_host_device();
  const std::size_t taps = 2 * (kWidth + kHeight) * sizeof(LinearTap);
  const std::size_t between = 4 * 255;  // so that each begins at a multiple of 256
  const std::size_t copied = after.to_device - before.to_device;
  if (copied < values.size() + taps || copied > values.size() + taps + between)
    fail("copies", 0, "more than the mask and its taps goes to the device");
  if (after.to_host != before.to_host) fail("copies", 0, "something comes back with a mask");
}

/// Runs of 32 pixels of a row that are neither opaque nor transparent throughout.
std::uint32_t mixed_runs(const DeviceJob& job, const DeviceResult& result) {
  std::uint32_t mixed = 0;
  for (int y = 0; y < job.height; ++y) {
    for (int left = 0; left < job.width; left += 32) {
      int opaque = 0;
      int transparent = 0;
      const int right = std::min(left + 32, job.width);
      for (int x = left; x < right; ++x) {
        const std::size_t pixel =
            static_cast<std::size_t>(y) * static_cast<std::size_t>(job.width) +
            static_cast<std::size_t>(x);
        const std::uint8_t alpha = result.pixels[4 * pixel + 3];
        opaque += alpha == 255 ? 1 : 0;
        transparent += alpha == 0 ? 1 : 0;
      }
      if (opaque != right - left && transparent != right - left) ++mixed;
    }
  }
  return mixed;
}

/// Of a job's image a third of its bytes comes back; also, or alone, all of them where it was
/// reduced, is very small, or has more edge than there is room for.
void brought_back(unsigned jobs) {
  Host host;
  unsigned thirds = 0;
  for (unsigned seed = 0; seed < jobs; ++seed) {
    const DeviceJob job(seed);
    DeviceResult result;
    const std::size_t before = copied_by_host_device().to_host;
    if (!run_job(*make_device_backend(host.device, pool()), job, result).ok())
      fail("bytes", seed, "a job failed");
    const std::size_t read = (result.input.size() + result.alpha.size()) * sizeof(float);
    const std::size_t copied = copied_by_host_device().to_host - before - read;
    constexpr std::size_t kOfAnswer = 400;  // with the summary
    const std::size_t image = result.pixels.size();
    const bool reduced = job.reduced_width != job.width || job.reduced_height != job.height;
    std::array<std::byte, 1> block{};
    const EdgeRunsBlock edges(job.width, job.height);
    const bool fits = !reduced && edges.bytes() != 0 &&
                      mixed_runs(job, result) <= edges.runs(block.data()).capacity;
    const std::size_t most = fits ? image / 3 : reduced ? image : image + image / 3;
    if (copied > most + kOfAnswer || (!fits && copied < image))
      fail("bytes", seed, "not what has to come back");
    if (fits) ++thirds;
  }
  if (thirds < jobs / 8 || thirds > jobs - jobs / 8)
    fail("bytes", jobs, "the images do not come back in both ways");
}

/// A block whose states name a run that is not there leaves the pixels as they were.
void damaged_block() {
  constexpr int kSide = 64;
  const EdgeRunsBlock edges(kSide, kSide);
  std::vector<std::byte> block(edges.bytes());
  std::vector<std::uint8_t> pixels(4 * kSide * kSide, 7);
  const std::vector<std::uint8_t> before = pixels;
  const ImageView view{pixels.data(), kSide, kSide, 4 * kSide};
  const cuda::EdgeRuns runs = edges.runs(block.data());
  *runs.count = 1;
  runs.states[0] = cuda::EdgeRuns::kTransparent;
  runs.states[5] = cuda::EdgeRuns::kFirst + 1;
  if (edges.write(block.data(), view, HiddenColour::kClear, pool()) || pixels != before)
    fail("block", 0, "a run that is not there was written");
  runs.states[5] = cuda::EdgeRuns::kFirst;
  if (!edges.write(block.data(), view, HiddenColour::kClear, pool()) || pixels[0] != 0)
    fail("block", 0, "a block was refused");
}

/// What jobs take while a session is opened is not reserved for the session again.
void reserved_once() {
  std::uint64_t used = 100;
  const auto budget = std::make_shared<ort::DeviceMemoryBudget>(1000, [&used] {
    return ort::DeviceUse{used, 2000};
  });
  ort::DeviceMemoryBudget::Reservation reservation;
  const auto open = [&]() -> Status {
    if (!budget->reserve(300)) fail("budget", 0, "300 of 1000 are refused");
    used += 500;
    return {};
  };
  const Status status =
      ort::DeviceMemoryBudget::reserve_session(budget, "A network", 0, open, reservation);
  if (!status.ok() || reservation.bytes() != 200 || budget->reserved() != 500 ||
      budget->left() != 500)
    fail("budget", 0, "the session's share is wrong");
  if (budget->reserve(501) || !budget->reserve(500)) fail("budget", 0, "the limit is not kept");
  budget->release(800);
  reservation = {};
  if (budget->reserved() != 0) fail("budget", 0, "not all was given back");
}

/// Memory is counted against a budget: what is kept is released before a job is refused, and all
/// of it is given back.
void budgeted() {
  const DeviceJob job(3);
  std::uint64_t needed = 0;
  {
    const auto counted =
        std::make_shared<ort::DeviceMemoryBudget>(1U << 30U, [] { return ort::DeviceUse{}; });
    Device device(host_device(), 0, counted);
    expect_cpu(device, job, 3, "within the budget");
    needed = counted->reserved();
    if (needed == 0 || needed != device.stats().kept_bytes)
      fail("budget", 3, "what is kept is not counted");
    device.release_kept();
    if (counted->reserved() != 0) fail("budget", 3, "what was released is counted");
  }
  const auto exact =
      std::make_shared<ort::DeviceMemoryBudget>(needed, [] { return ort::DeviceUse{}; });
  {
    Device device(host_device(), 0, exact);
    // Other jobs leave blocks of other sizes.
    for (unsigned seed = 0; seed < 20; ++seed) {
      DeviceResult ignored;
      const Status status = run_job(*make_device_backend(device, pool()), DeviceJob(seed), ignored);
      if (!status.ok() && status.code() != Code::kDeviceMemory)
        fail("budget", seed, status.message());
      if (exact->reserved() > needed) fail("budget", seed, "more than the limit is used");
      expect_cpu(device, job, 3, "after others, within the budget");
    }
  }
  if (exact->reserved() != 0) fail("budget", 3, "memory of a device that is gone is counted");
  Device device(host_device(), 0,
                std::make_shared<ort::DeviceMemoryBudget>(5000, [] { return ort::DeviceUse{}; }));
  DeviceResult ignored;
  const Status refused = run_job(*make_device_backend(device, pool()), job, ignored);
  if (refused.code() != Code::kDeviceMemory) fail("budget", 3, "a job beyond it was not refused");
  if (std::string(refused.message()).find("CUTOUT_DEVICE_MEMORY") == std::string::npos)
    fail("budget", 3, refused.message());
}

const char* name_of(Fault fault) {
  return fault == Fault::kMemory   ? "device memory"
         : fault == Fault::kPinned ? "page-locked memory"
         : fault == Fault::kOnce   ? "one call"
                                   : "device lost";
}

Code code_of(Fault fault) {
  return fault == Fault::kMemory   ? Code::kDeviceMemory
         : fault == Fault::kPinned ? Code::kOutOfMemory
                                   : Code::kDevice;
}

/// Fails each call of a job in turn, on a device of its own: the job has the code of the fault, or
/// its result is right; the next one works; nothing is leaked. Returns the number of calls.
int fail_each(Fault fault, unsigned seed) {
  const DeviceJob job(seed);
  const DeviceResult right = by_cpu(job, seed);
  int failed = 0;
  for (int call = 1;; ++call) {
    bool reached = false;
    {
      Host host;
      fail_at(fault, call);
      DeviceResult result;
      const Status status = run_job(*make_device_backend(host.device, pool()), job, result);
      reached = calls_that_could_fail() >= call;
      fail_at(Fault::kNothing, 0);
      if (!status.ok() && status.code() != code_of(fault))
        fail(name_of(fault), seed, status.message());
      if (status.ok() && !result.same_as(right)) {
        fail(name_of(fault), seed, "a call failed, the job did not, and its result is wrong");
      }
      failed += status.ok() ? 0 : 1;
      host.expect_idle(seed);
      expect_cpu(host.device, job, seed, "after a fault");
    }
    expect_nothing_held(name_of(fault));
    if (!reached) break;
  }
  if (failed == 0) fail(name_of(fault), seed, "no call was seen to fail");
  return failed;
}

void on_gpu(const char* file, unsigned jobs) {
  const cuda::Table* table = nullptr;
  const Status opened = cuda::open_library(file, table);
  if (!opened.ok()) fail("library", 0, opened.message());
  int devices = 0;
  const int error = table->device_count(&devices);
  if (error != 0 || devices == 0) {
    std::printf("library opened, not run on a GPU: %s\n",
                error == 0 ? "there is none" : table->error_text(error));
    return;
  }
  Device device(*table, 0);
  // The sigmoid's difference may change a rounding.
  contract(device, {8e-6F, 2e-6F, 0, 1, 1e-3});
  like_the_cpu(device, jobs);
  std::printf("library opened, %u jobs on the device\n", jobs);
}

}  // namespace

int main(int argc, char** argv) {
  const auto jobs = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 200);
  {
    Host host;
    contract(host.device, {});
    like_the_cpu(host.device, jobs);
  }
  std::printf("%u jobs like the CPU's\n", jobs);
  for (const Lateness lateness : {Lateness::kAtOnce, Lateness::kAnyTime, Lateness::kAtWait}) {
    set_lateness(lateness, jobs);
    {
      Host host;
      like_the_cpu(host.device, jobs / 10 + 1);
    }
    cancelled(jobs / 10 + 1);
    dropped(jobs / 20 + 1);
    side_by_side(jobs / 4 + 4);
  }
  std::printf("jobs whose work is done at once, at any time and at the wait\n");
  stopped(jobs / 10 + 1);
  reused();
  copied_once();
  brought_back(jobs / 2 + 20);
  damaged_block();
  reserved_once();
  budgeted();
  expect_nothing_held("jobs");
  for (const Fault fault : {Fault::kMemory, Fault::kPinned, Fault::kOnce, Fault::kLost}) {
    int failed = 0;
    for (unsigned seed = 0; seed < jobs / 100 + 1; ++seed) {
      set_lateness(seed % 2 == 0 ? Lateness::kAtWait : Lateness::kAnyTime, seed);
      failed += fail_each(fault, seed);
    }
    std::printf("%s: %d calls failed in turn\n", name_of(fault), failed);
  }
  set_lateness(Lateness::kAtWait);
  if (argc > 2) on_gpu(argv[2], jobs);
  return 0;
}
