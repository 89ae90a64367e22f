#include "ort/network.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/thread_pool.h"
#include "cuda/library.h"
#include "gpu_check/checks.h"
#include "ort/device_memory_budget.h"
#include "pipeline/cpu_backend.h"
#include "pipeline/device_backend.h"
#include "pipeline/gpu_network.h"
#include "sched/batcher.h"

namespace cutout::gpu_check {

namespace {

/// Differences of probabilities from float32 on the CPU that float16 may have: on average, and all
/// but one value in a thousand.
constexpr double kMeanLimit = 0.002;
constexpr double kP999Limit = 0.05;

constexpr double kLoad = 0.8;  // share of the best rate

using Image = std::vector<float>;

/// Normalised images: soft shapes and noise, each seed its own.
Image make_image(std::size_t seed, int width, int height) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_real_distribution<float> any(0, 1);
  const float x0 = any(random);
  const float y0 = any(random);
  const float radius = 0.15F + 0.25F * any(random);
  Image image;
  image.reserve(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (int channel = 0; channel < 3; ++channel) {
    const float inside = 2 * any(random) - 1;
    const float outside = 2 * any(random) - 1;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const float dx = static_cast<float>(x) / static_cast<float>(width) - x0;
        const float dy = static_cast<float>(y) / static_cast<float>(height) - y0;
        const float edge =
            std::clamp(30 * (radius - std::sqrt(dx * dx + dy * dy)) + 0.5F, 0.0F, 1.0F);
        image.push_back(edge * inside + (1 - edge) * outside + 0.05F * (any(random) - 0.5F));
      }
    }
  }
  return image;
}

class NetworkCheck {
 public:
  NetworkCheck(const Options& options, Report& report) : options_(options), report_(report) {}

  Status run() {
    for (std::size_t i = 0; i < static_cast<std::size_t>(options_.largest_batch); ++i)
      images_.push_back(make_image(i, options_.width, options_.height));
    CUTOUT_RETURN_IF_ERROR(compute_reference());
    CUTOUT_RETURN_IF_ERROR(open());
    for (const BatchTiming& timing : network_->timings())
      CUTOUT_RETURN_IF_ERROR(check_batch(timing.size));
    say_differences();
    return measure_load();
  }

 private:
  [[nodiscard]] ort::NetworkOptions network_options() const {
    ort::NetworkOptions options;
    options.width = options_.width;
    options.height = options_.height;
    return options;
  }

  [[nodiscard]] double probability(float value) const {
    return options_.logit ? 1 / (1 + std::exp(-static_cast<double>(value))) : value;
  }

  /// float32 on the CPU, one image at a time.
  Status compute_reference() {
    ort::NetworkOptions options = network_options();
    options.path = options_.reference;
    options.intra_op_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    std::unique_ptr<ort::Network> network;
    CUTOUT_RETURN_IF_ERROR(ort::Network::open(options, token_, network));
    for (const Image& image : images_) {
      std::ranges::copy(image, network->input(0).begin());
      CUTOUT_RETURN_IF_ERROR(network->run(0, token_));
      const std::span<float> output = network->output(0);
      reference_.emplace_back(output.begin(), output.end());
    }
    return {};
  }

  Status open_program() {
    CUTOUT_RETURN_IF_ERROR(open_memory());
    GpuNetworkOptions options;
    options.path = options_.program;
    options.width = options_.width;
    options.height = options_.height;
    options.slots = 2 * options_.largest_batch;
    options.largest_batch = options_.largest_batch;
    CUTOUT_RETURN_IF_ERROR(GpuNetwork::open(options, *memory_, token_, network_));
    report_.load_ms = network_->load_ms();
    report_.warm_up_ms = network_->warm_up_ms();
    report_.device_memory = memory_->stats().used_bytes;
    report_.say("network", true,
                "Cutout's own kernels run batches of up to " +
                    std::to_string(network_->timings().back().size) + ".");
    return {};
  }

  Status open() {
    if (!options_.program.empty()) return open_program();
    ort::NetworkOptions options = network_options();
    options.path = options_.network;
    options.slots = 2 * options_.largest_batch;
    options.timed = true;
    for (int size = options_.largest_batch; size > 1; size /= 2)
      options.batches.insert(options.batches.begin(), size);
    if (options_.device) {
      if (!options_.kernels.empty()) CUTOUT_RETURN_IF_ERROR(open_memory());
      options.memory = memory_.get();
      options.provider = options_.provider;
      options.gpu = {*options_.device, 0, options_.fp16, options_.engine_cache};
      options.budget = std::make_shared<ort::DeviceMemoryBudget>(
          0, [number = *options_.device] { return ort::device_use(number); });
    } else {
      options.bind = true;
    }
    CUTOUT_RETURN_IF_ERROR(ort::Network::open(options, token_, network_));
    report_.load_ms = network_->load_ms();
    report_.warm_up_ms = network_->warm_up_ms();
    if (options.budget != nullptr) report_.device_memory = options.budget->reserved();
    const bool all = network_->timings().size() == options.batches.size() + 1;
    report_.say("network", all,
                "It was opened for batches of up to " +
                    std::to_string(network_->timings().back().size) +
                    (all ? "." : ", not for all that were asked for."));
    return {};
  }

  /// Inputs and outputs on the device, where the engine has them.
  Status open_memory() {
    const cuda::Table* table = nullptr;
    CUTOUT_RETURN_IF_ERROR(cuda::open_library(options_.kernels, table));
    memory_ = std::make_unique<Device>(*table, *options_.device);
    backend_ = make_device_backend(*memory_, pool_);
    return {};
  }

  Status check_batch(std::size_t size) {
    BatchResult result;
    result.size = size;
    std::vector<int> slots;
    for (std::size_t i = 0; i < size; ++i) {
      const int slot = static_cast<int>(i);
      slots.push_back(slot);
      CUTOUT_RETURN_IF_ERROR(network_->open_slot(slot));
      CUTOUT_RETURN_IF_ERROR(backend_->upload(
          images_[i], network_->input_tensor(slot, options_.width, options_.height)));
      const std::vector<float> none(network_->output_plane(slot).size(), -1.0F);
      CUTOUT_RETURN_IF_ERROR(backend_->upload(none, network_->output_plane(slot)));
    }
    CUTOUT_RETURN_IF_ERROR(network_->run_batch(size, slots, token_, pool_));
    CUTOUT_RETURN_IF_ERROR(compare(result));
    int runs = 0;
    const Clock::time_point start = Clock::now();
    double taken = 0;
    do {
      CUTOUT_RETURN_IF_ERROR(network_->run_batch(size, slots, token_, pool_));
      ++runs;
      taken = milliseconds(start, Clock::now());
    } while (taken < 1000 * options_.seconds);
    result.ms = taken / runs;
    result.images_per_second = 1000 * static_cast<double>(size) / result.ms;
    report_.batches.push_back(result);
    return {};
  }

  /// Of the first `size` slots, with the reference.
  Status compare(BatchResult& result) {
    std::vector<double> differences;
    Uncertainty ignored;
    for (std::size_t i = 0; i < result.size; ++i) {
      const TensorView plane = network_->output_plane(static_cast<int>(i));
      std::vector<float> output(plane.size());
      if (!options_.program.empty())  // it gives logits
        CUTOUT_RETURN_IF_ERROR(backend_->to_probability(
            plane, NetworkOutput::kLogit, {0, 0, plane.width, plane.height}, ignored));
      CUTOUT_RETURN_IF_ERROR(backend_->download(plane, output));
      for (std::size_t k = 0; k < output.size(); ++k) {
        if (!std::isfinite(output[k])) {
          ++result.not_finite;
          continue;
        }
        differences.push_back(std::abs(probability(output[k]) - probability(reference_[i][k])));
      }
      result.values += output.size();
    }
    if (differences.empty()) return {};
    double sum = 0;
    for (const double difference : differences) sum += difference;
    result.mean_difference = sum / static_cast<double>(differences.size());
    const auto at =
        static_cast<std::ptrdiff_t>(0.999 * static_cast<double>(differences.size() - 1));
    std::ranges::nth_element(differences, differences.begin() + at);
    result.p999_difference = differences[static_cast<std::size_t>(at)];
    return {};
  }

  void say_differences() {
    const auto none_of = [this](auto wrong) {
      return std::ranges::none_of(report_.batches, wrong);
    };
    const bool finite = none_of([](const BatchResult& batch) { return batch.not_finite > 0; });
    report_.say("finite", finite,
                finite ? "No value is infinite or not a number, in any size of batch."
                       : "There are values that are infinite or not a number.");
    // Written so that a difference that is not a number is wrong.
    const bool close = none_of([](const BatchResult& batch) {
      return !(batch.mean_difference <= kMeanLimit && batch.p999_difference <= kP999Limit);
    });
    report_.say("values", close,
                std::string(close ? "All sizes of batches give" : "Not all sizes of batches give") +
                    " what float32 on the CPU gives, within 0.002 on average and 0.05 for 99.9 %.");
  }

  /// Poisson arrivals at a share of the best rate, through the batcher.
  Status measure_load() {
    LoadResult load;
    load.share = kLoad;
    for (const BatchResult& batch : report_.batches)
      load.offered_per_second = std::max(load.offered_per_second, kLoad * batch.images_per_second);
    std::vector<BatchBucket> buckets;
    for (const BatchResult& batch : report_.batches) {
      const std::chrono::duration<double, std::milli> latency(batch.ms);
      buckets.push_back({batch.size, std::chrono::duration_cast<Clock::duration>(latency)});
    }
    BatchDevice device;
    device.execute = [this](std::size_t size, std::span<const int> slots,
                            const CancelToken& token) {
      return network_->run_batch(size, slots, token, pool_);
    };
    Batcher batcher(buckets, {std::chrono::milliseconds(2)}, device);
    std::mutex mutex;  // guards everything up to `failed`
    std::mt19937 random(20261124);
    std::exponential_distribution<double> gap(load.offered_per_second);
    const Clock::time_point start = Clock::now();
    double next = 0;  // seconds from the start
    std::vector<double> latencies;
    Status failed;
    for (int slot = 0; slot < 2 * options_.largest_batch; ++slot)
      CUTOUT_RETURN_IF_ERROR(network_->open_slot(slot));
    const auto serve = [&](int slot) {
      for (;;) {
        Clock::time_point arrival;
        {
          const std::lock_guard lock(mutex);
          next += gap(random);
          if (next > options_.seconds || !failed.ok()) return;
          arrival = start + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(next));
        }
        std::this_thread::sleep_until(arrival);
        Clock::duration waited{0};
        const Status status = batcher.run(slot, token_, waited);
        const std::lock_guard lock(mutex);
        if (!status.ok()) failed = status;
        latencies.push_back(milliseconds(arrival, Clock::now()));
      }
    };
    std::vector<std::thread> threads;
    for (int slot = 0; slot < 2 * options_.largest_batch; ++slot) threads.emplace_back(serve, slot);
    for (std::thread& thread : threads) thread.join();
    CUTOUT_RETURN_IF_ERROR(failed);
    if (latencies.empty()) return {};
    load.done_per_second =
        1000 * static_cast<double>(latencies.size()) / milliseconds(start, Clock::now());
    std::ranges::sort(latencies);
    const auto quantile = [&](double q) {
      return latencies[static_cast<std::size_t>(q * static_cast<double>(latencies.size() - 1))];
    };
    load.p50_ms = quantile(0.5);
    load.p99_ms = quantile(0.99);
    report_.load = load;
    return {};
  }

  const Options& options_;
  Report& report_;
  const CancelToken token_;
  ThreadPool pool_{static_cast<int>(std::max(1U, std::thread::hardware_concurrency())) - 1};
  std::vector<Image> images_;
  std::vector<std::vector<float>> reference_;
  std::unique_ptr<Device> memory_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(pool_);
  std::unique_ptr<Network> network_;
};

}  // namespace

void check_network(const Options& options, Report& report) {
  if (options.network.empty() && options.program.empty()) {
    report.say("network", false, "It was not checked: --network names a prepared network.");
    return;
  }
  const Status status = caught([&] { return NetworkCheck(options, report).run(); });
  if (!status.ok()) report.say("network", false, status.message());
}

}  // namespace cutout::gpu_check
