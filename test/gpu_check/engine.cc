#include "pipeline/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuda/library.h"
#include "gpu_check/checks.h"

namespace cutout::gpu_check {

namespace {

/// Differences of alpha from the CPU's, in levels of 255, that float16 in the network may have: on
/// average, and all but one pixel in a thousand.
constexpr double kMeanLimit = 0.5;
constexpr double kP999Limit = 13;

struct Size {
  int width;
  int height;
};

/// 1, 12 and 50 megapixels.
constexpr std::array<Size, 3> kSizes{{{1155, 866}, {4000, 3000}, {8660, 5773}}};

using Pixels = std::vector<std::uint8_t>;

/// A disc with a soft edge on a slope, both with grain; straight RGBA.
Pixels make_picture(const Size& size, unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&random] { return static_cast<double>(random() % 1000) / 1000; };
  const double x0 = (0.35 + 0.3 * any()) * size.width;
  const double y0 = (0.35 + 0.3 * any()) * size.height;
  const double radius = (0.2 + 0.15 * any()) * size.height;
  const double soft = 0.004 * size.height;
  Pixels image(4 * static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height),
               255);
  std::size_t at = 0;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x, at += 4) {
      const double inside =
          std::clamp((radius - std::hypot(x - x0, y - y0)) / soft + 0.5, 0.0, 1.0);
      const int grain = static_cast<int>(random() % 16);
      for (std::size_t c = 0; c < 3; ++c) {
        const double disc = 200 - 40 * static_cast<double>(c);
        const double slope = 20 + 100.0 * x / size.width;
        image[at + c] = static_cast<std::uint8_t>(inside * disc + (1 - inside) * slope + grain);
      }
    }
  }
  return image;
}

/// Waits for a callback of the engine.
template <typename Result>
struct Answer {
  std::promise<std::pair<Status, Result>> promise;

  auto callback() {
    return [this](Status status, Result result) {
      promise.set_value({std::move(status), std::move(result)});
    };
  }
  Status wait(Result& result) {
    auto [status, given] = promise.get_future().get();
    result = std::move(given);
    return status;
  }
};

NetworkSpec network_of(const Options& options, const std::string& file) {
  NetworkSpec spec;
  spec.name = "checked";
  spec.path = file;
  spec.fp16 = options.fp16;
  spec.engine_cache = options.engine_cache;
  spec.input = {options.width, options.height, {128, 128, 128}, {256, 256, 256}};
  spec.output = options.logit ? NetworkOutput::kLogit : NetworkOutput::kProbability;
  spec.trained_on = TrainedOn::kMasks;
  return spec;
}

NetworkSpec network_on_device(const Options& options) {
  if (options.program.empty()) return network_of(options, options.network);
  NetworkSpec spec = network_of(options, options.program);
  spec.gpu_program = true;
  spec.output = NetworkOutput::kLogit;
  return spec;
}

MattePlan plan_of(const Size& size) {
  MattePlan plan;
  plan.width = size.width;
  plan.height = size.height;
  plan.roi = {0, 0, size.width, size.height};
  return plan;
}

Status open(const EngineOptions& options, const NetworkSpec& spec, std::unique_ptr<Engine>& engine,
            NetworkInfo& info) {
  CUTOUT_RETURN_IF_ERROR(Engine::create(options, engine));
  Answer<NetworkInfo> loaded;
  engine->load(spec, loaded.callback());
  return loaded.wait(info);
}

EngineOptions on_device(const Options& options) {
  EngineOptions engine;
  engine.runtime_path = options.runtime;
  if (options.device) {
    engine.provider = options.provider;
    engine.device_ids = {*options.device};
  }
  engine.kernels_path = options.kernels;
  engine.libraries = options.libraries;
  engine.workers = 2 * options.largest_batch;
  engine.intra_op_threads = 1;
  engine.pixel_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  engine.queue_limit = 16 * options.largest_batch;
  engine.max_batch = options.largest_batch;
  engine.batch_delay_ms = 2;
  return engine;
}

EngineOptions on_cpu(const Options& options) {
  EngineOptions engine;
  engine.runtime_path = options.runtime;
  engine.intra_op_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  engine.pixel_threads = engine.intra_op_threads;
  engine.queue_limit = 4;
  return engine;
}

class EngineCheck {
 public:
  EngineCheck(const Options& options, Report& report)
      : options_(options),
        report_(report),
        // The host in the place of a GPU shows that the check works.
        sizes_(kSizes.begin(), options.device ? kSizes.end() : kSizes.begin() + 1) {}

  Status run() {
    for (const Size& size : sizes_) pictures_.push_back(make_picture(size, 7));
    CUTOUT_RETURN_IF_ERROR(compute_reference());
    EngineResult& result = report_.engine.emplace();
    NetworkInfo info;
    CUTOUT_RETURN_IF_ERROR(open(on_device(options_), network_on_device(options_), engine_, info));
    result.load_ms = info.load_ms + info.warm_up_ms;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const Clock::time_point start = Clock::now();
      Pixels pixels = pictures_[i];
      MatteResult matte;
      CUTOUT_RETURN_IF_ERROR(make(sizes_[i], pixels, matte));
      if (i == 0) result.first_ms = milliseconds(start, Clock::now());
      EngineRound& round = result.rounds.emplace_back();
      round.width = sizes_[i].width;
      round.height = sizes_[i].height;
      compare(pixels, i, round);
      CUTOUT_RETURN_IF_ERROR(measure(i, round));
      EngineRound many = round;
      many.at_a_time = static_cast<int>(std::min<std::size_t>(
          static_cast<std::size_t>(2 * options_.largest_batch), kMostPixels / area(sizes_[i])));
      CUTOUT_RETURN_IF_ERROR(measure(i, many));
      result.rounds.push_back(many);
    }
    say_differences(result);
    CUTOUT_RETURN_IF_ERROR(cancel());
    for (const auto& budget : engine_->budgets()) result.device_memory += budget->reserved();
    engine_->close(std::chrono::seconds(5));
    return {};
  }

 private:
  /// Of all images in progress, which are copied.
  static constexpr std::size_t kMostPixels = 400'000'000;

  static std::size_t area(const Size& size) {
    return static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
  }

  static ImageView view(const Size& size, Pixels& pixels) {
    return {pixels.data(), size.width, size.height, static_cast<std::ptrdiff_t>(size.width) * 4};
  }

  Status make(const Size& size, Pixels& pixels, MatteResult& matte) {
    Answer<MatteResult> answer;
    engine_->matte(next_id_++, {view(size, pixels), plan_of(size), "checked", {}},
                   answer.callback());
    return answer.wait(matte);
  }

  /// The same engine on the CPU, with the network in float32.
  Status compute_reference() {
    NetworkInfo info;
    CUTOUT_RETURN_IF_ERROR(
        open(on_cpu(options_), network_of(options_, options_.reference), engine_, info));
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      Pixels pixels = pictures_[i];
      MatteResult matte;
      CUTOUT_RETURN_IF_ERROR(make(sizes_[i], pixels, matte));
      reference_.push_back(std::move(pixels));
    }
    engine_->close(std::chrono::seconds(5));
    engine_.reset();
    return {};
  }

  void compare(const Pixels& made, std::size_t which, EngineRound& round) const {
    const Pixels& right = reference_[which];
    std::array<std::size_t, 256> counts{};
    for (std::size_t at = 3; at < right.size(); at += 4)
      ++counts[static_cast<std::size_t>(std::abs(int{made[at]} - int{right[at]}))];
    const std::size_t all = right.size() / 4;
    std::size_t below = 0;
    double sum = 0;
    round.p999_difference = 255;
    for (std::size_t level = 0; level < counts.size(); ++level) {
      sum += static_cast<double>(level * counts[level]);
      below += counts[level];
      if (1000 * below >= 999 * all && round.p999_difference == 255)
        round.p999_difference = static_cast<double>(level);
    }
    round.mean_difference = sum / static_cast<double>(all);
  }

  void say_differences(const EngineResult& result) {
    const bool close = std::ranges::all_of(result.rounds, [](const EngineRound& round) {
      return round.mean_difference <= kMeanLimit && round.p999_difference <= kP999Limit;
    });
    report_.say("engine", close,
                close ? "Mattes are the CPU's, within 0.5 levels on average and 13 for 99.9 %."
                      : "Mattes differ from the CPU's by more than 0.5 levels on average or 13 for "
                        "99.9 %.");
  }

  /// round.at_a_time images of one size at a time, for the time of a measurement.
  Status measure(std::size_t which, EngineRound& round) {
    const Size& size = sizes_[which];
    const auto at_a_time = static_cast<std::size_t>(round.at_a_time);
    std::vector<Pixels> buffers(at_a_time, pictures_[which]);
    std::mutex mutex;  // guards the next five
    std::condition_variable changed;
    std::vector<std::size_t> free;
    std::size_t running = 0;
    std::vector<double> latencies;
    Status failed;
    MatteResult sum;
    for (std::size_t i = 0; i < at_a_time; ++i) free.push_back(i);
    Clock::time_point start;
    const std::size_t warm_up = 2 * at_a_time;
    for (std::size_t begun = 0;; ++begun) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !free.empty(); });
      if (begun == warm_up) {  // memory and threads are there
        changed.wait(lock, [&] { return running == 0; });
        latencies.clear();
        sum = {};
        start = Clock::now();
      }
      const bool over = begun >= warm_up + at_a_time &&
                        milliseconds(start, Clock::now()) > 1000 * options_.seconds;
      if (over || !failed.ok()) {
        changed.wait(lock, [&] { return running == 0; });
        break;
      }
      const std::size_t slot = free.back();
      free.pop_back();
      ++running;
      lock.unlock();
      const Clock::time_point from = Clock::now();
      const auto done = [&, slot, from](Status status, const MatteResult& matte) {
        const std::lock_guard guard(mutex);
        if (!status.ok() && failed.ok()) failed = std::move(status);
        latencies.push_back(milliseconds(from, Clock::now()));
        sum.queue_ms += matte.queue_ms;
        sum.prepare_ms += matte.prepare_ms;
        sum.infer_ms += matte.infer_ms;
        sum.matte_ms += matte.matte_ms;
        free.push_back(slot);
        --running;
        changed.notify_all();
      };
      engine_->matte(next_id_++, {view(size, buffers[slot]), plan_of(size), "checked", {}}, done);
    }
    const double taken = milliseconds(start, Clock::now());
    CUTOUT_RETURN_IF_ERROR(failed);
    std::ranges::sort(latencies);
    const auto n = static_cast<double>(latencies.size());
    round.images = latencies.size();
    round.images_per_second = 1000 * n / taken;
    round.p50_ms = latencies[latencies.size() / 2];
    round.p99_ms = latencies[latencies.size() * 99 / 100];
    round.queue_ms = sum.queue_ms / n;
    round.prepare_ms = sum.prepare_ms / n;
    round.infer_ms = sum.infer_ms / n;
    round.matte_ms = sum.matte_ms / n;
    return {};
  }

  /// Every other job of two full batches is cancelled, at times spread over one; then one more is
  /// made.
  Status cancel() {
    const auto jobs = static_cast<std::size_t>(2 * options_.largest_batch);
    std::vector<Pixels> buffers(jobs, pictures_.front());
    std::vector<Answer<MatteResult>> answers(jobs);
    const std::uint64_t first = next_id_;
    for (std::size_t i = 0; i < jobs; ++i)
      engine_->matte(next_id_++,
                     {view(kSizes.front(), buffers[i]), plan_of(kSizes.front()), "checked", {}},
                     answers[i].callback());
    for (std::size_t i = 0; i < jobs; i += 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      engine_->cancel(first + i);
    }
    std::size_t cancelled = 0;
    bool right = true;
    for (std::size_t i = 0; i < jobs; ++i) {
      MatteResult matte;
      const Status status = answers[i].wait(matte);
      if (status.code() == Code::kCancelled && i % 2 == 0)
        ++cancelled;
      else if (!status.ok())
        return status;
    }
    Pixels pixels = pictures_.front();
    MatteResult matte;
    CUTOUT_RETURN_IF_ERROR(make(kSizes.front(), pixels, matte));
    EngineRound after;
    compare(pixels, 0, after);
    right = after.mean_difference <= kMeanLimit && after.p999_difference <= kP999Limit;
    report_.say("cancelled", right,
                std::to_string(cancelled) + " of " + std::to_string(jobs) +
                    " jobs were cancelled; the others were made" +
                    (right ? ", and the one after them is right." : ", the one after is WRONG."));
    return {};
  }

  const Options& options_;
  Report& report_;
  const std::vector<Size> sizes_;
  std::vector<Pixels> pictures_;
  std::vector<Pixels> reference_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t next_id_ = 1;
};

bool misses(const Options& options, Report& report, const char* part) {
  if (!(options.network.empty() && options.program.empty()) &&
      (!options.device || !options.kernels.empty()))
    return false;
  report.say(part, false,
             "It was not checked: --network names a prepared network, --kernels "
             "libcutout_cuda.so.");
  return true;
}

}  // namespace

void check_engine(const Options& options, Report& report) {
  if (misses(options, report, "engine")) return;
  const Status status = caught([&] { return EngineCheck(options, report).run(); });
  if (!status.ok()) report.say("engine", false, status.message());
}

void check_lost_device(const Options& options, Report& report) {
  if (!options.device) return;
  if (misses(options, report, "lost")) return;
  const Status status = caught([&]() -> Status {
    std::unique_ptr<Engine> engine;
    NetworkInfo info;
    EngineOptions small = on_device(options);
    small.max_batch = 1;
    small.workers = 1;
    CUTOUT_RETURN_IF_ERROR(open(small, network_on_device(options), engine, info));
    const auto make = [&](MatteResult& matte) {
      Pixels pixels = make_picture(kSizes.front(), 7);
      Answer<MatteResult> answer;
      engine->matte(1,
                    {{pixels.data(), kSizes.front().width, kSizes.front().height,
                      static_cast<std::ptrdiff_t>(kSizes.front().width) * 4},
                     plan_of(kSizes.front()),
                     "checked",
                     {}},
                    answer.callback());
      return answer.wait(matte);
    };
    MatteResult matte;
    CUTOUT_RETURN_IF_ERROR(make(matte));
    const cuda::Table* table = nullptr;
    CUTOUT_RETURN_IF_ERROR(cuda::open_library(options.kernels, table));
    // An address that no allocation has: the kernel's access is an error that stays.
    auto* const nowhere = reinterpret_cast<float*>(std::uintptr_t{4096});
    (void)table->use_device(*options.device);
    (void)table->probability(nowhere, 1024, false, reinterpret_cast<std::uint32_t*>(nowhere),
                             nullptr);
    const int error = table->synchronize(nullptr);
    const Status first = make(matte);
    const Status second = make(matte);
    const bool right =
        error != 0 && first.code() == Code::kDevice && second.code() == Code::kDevice;
    report.say("lost", right,
               "After error " + std::to_string(error) + " the engine says: " + first.message() +
                   " Then: " + second.message());
    engine->close(std::chrono::seconds(5));
    return {};
  });
  if (!status.ok()) report.say("lost", false, status.message());
}

}  // namespace cutout::gpu_check
