#include "pipeline/engine.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "cuda/library.h"
#include "ort/runtime.h"
#include "pipeline/gpu_network.h"

namespace cutout {

namespace {

/// Compute capability that Cutout's own networks need (cuda/network/table.h).
constexpr int kLeastComputeMajor = 8;

constexpr const char* kNoSelector = "No selector is loaded.";

/// The largest batch and its halves, ascending, without 1.
std::vector<int> batch_sizes(int largest) {
  std::vector<int> sizes;
  for (int size = largest; size > 1; size /= 2) sizes.push_back(size);
  std::ranges::reverse(sizes);
  return sizes;
}

std::vector<std::shared_ptr<ort::DeviceMemoryBudget>> budgets_of(
    const std::vector<ort::GpuRuntime>& gpus, std::uint64_t limit) {
  std::vector<std::shared_ptr<ort::DeviceMemoryBudget>> budgets;
  for (const ort::GpuRuntime& gpu : gpus) {
    // Nine tenths of it, as the budget itself would take where it can measure.
    const std::uint64_t most = limit > 0 ? limit : gpu.device.memory_bytes / 10 * 9;
    budgets.push_back(std::make_shared<ort::DeviceMemoryBudget>(
        most, [number = gpu.device.number] { return ort::device_use(number); }));
  }
  return budgets;
}

}  // namespace

Status Engine::create(const EngineOptions& options, std::unique_ptr<Engine>& engine) {
  return caught([&]() -> Status {
    CUTOUT_RETURN_IF_ERROR(ort::open_runtime(options.runtime_path));
    std::vector<ort::GpuRuntime> gpus;
    const cuda::Table* kernels = nullptr;
    if (options.provider != ort::Provider::kCpu) {
      const std::string& named = options.kernels_path;
      if (!ort::copies_values(options.provider)) {
        CUTOUT_RETURN_IF_ERROR(
            open_gpu_kernels(named.empty() ? cuda::library_file() : named, kernels));
      }
      const bool own = kernels != nullptr && options.provider == ort::Provider::kCuda;
      for (const int number : options.device_ids) {
        CUTOUT_RETURN_IF_ERROR(ort::open_device(
            options.provider, number, options.libraries, options.plugin,
            own ? ort::OwnKernels::kThere : ort::OwnKernels::kNone, gpus.emplace_back()));
      }
    }
    try {
      engine.reset(new Engine(options, std::move(gpus), kernels));
    } catch (const std::system_error& error) {
      return {Code::kRuntime,
              "The engine needs " + std::to_string(options.workers) + " workers and " +
                  std::to_string(options.pixel_threads) +
                  " pixel threads, and the system did not start all of them: " + error.what() +
                  ". Raise the limit of threads (ulimit -u, pids.max), or set CUTOUT_WORKERS and "
                  "CUTOUT_THREADS to fewer."};
    }
    return {};
  });
}

Engine::Engine(const EngineOptions& options, std::vector<ort::GpuRuntime> gpus,
               const cuda::Table* kernels)
    : options_(options),
      gpus_(std::move(gpus)),
      budgets_(budgets_of(gpus_, options.device_memory)),
      devices_(kernels, options_.device_ids, budgets_),
      scheduler_(options.workers, options.pixel_threads, options.queue_limit,
                 options.idle_release_ms == 0
                     ? IdleWork{}
                     : IdleWork{std::chrono::milliseconds(options.idle_release_ms),
                                [this] { release_memory(); }}) {}

void Engine::release_memory() {
  ort::release_memory();
  devices_.release_kept();
}

void Engine::trim_heap_if_alone() {
  if (scheduler_.stats().running == 1) ort::trim_heap();
}

template <typename Result>
void Engine::push(std::optional<std::uint64_t> id, Executor executor,
                  std::function<Status(int, const CancelToken&, Result&)> work, Done<Result> done) {
  // Written by the work and read by the callback after it; the scheduler orders the two.
  const auto result = std::make_shared<Result>();
  const auto finish = std::make_shared<Done<Result>>(std::move(done));
  Job job;
  job.id = id;
  job.executor = executor;
  job.work = [work = std::move(work), result](int worker, const CancelToken& token) {
    return work(worker, token, *result);
  };
  job.done = [finish, result](Status status) { (*finish)(std::move(status), std::move(*result)); };
  if (Status status = scheduler_.push(std::move(job)); !status.ok()) {
    (*finish)(std::move(status), Result{});
  }
}

ort::NetworkOptions Engine::network_options(const NetworkSpec& spec) const {
  ort::NetworkOptions options;
  options.path = spec.path;
  options.save_to = spec.save_to;
  options.operators = spec.operators;
  options.width = spec.input.width;
  options.height = spec.input.height;
  options.provider = options_.provider;
  options.gpu.device_id = options_.device_ids.front();
  options.gpu.fp16 = spec.fp16;
  options.gpu.engine_cache = spec.engine_cache;
  options.gpu.kernel_cache = spec.kernel_cache;
  options.intra_op_threads = options_.intra_op_threads;
  options.slots = options_.workers;
  return options;
}

ort::NetworkOptions Engine::matting_options(const NetworkSpec& spec, std::size_t device) {
  ort::NetworkOptions options = network_options(spec);
  options.gpu.device_id = options_.device_ids[device];
  options.gpu.memory_limit = options_.device_memory;
  if (!budgets_.empty()) options.budget = budgets_[device];
  options.memory = devices_.memory(device);
  options.batches = batch_sizes(options_.max_batch);
  // A batch may still read the buffers of a job that was cancelled.
  options.lend_buffers = !has_devices() && options.batches.empty();
  options.opening = [this, name = spec.name, device](int batch) { note_step(name, device, batch); };
  // On a CPU runs of different workers share its cores; devices have a queue.
  options.timed = has_devices();
  if (device > 0) options.save_to.clear();
  return options;
}

Status Engine::open_network(const NetworkSpec& spec, std::size_t device, const CancelToken& token,
                            std::unique_ptr<Network>& network) {
  if (spec.gpu_program) {
    GpuNetworkOptions options;
    options.path = spec.path;
    options.width = spec.input.width;
    options.height = spec.input.height;
    options.slots = options_.workers;
    options.largest_batch = options_.max_batch;
    options.opening = [this, name = spec.name, device](int batch) {
      note_step(name, device, batch);
    };
    Device* const memory = devices_.memory(device);
    if (memory == nullptr) {
      return {Code::kProvider, "The network '" + spec.path + "' runs on a GPU by " +
                                   cuda::library_file() +
                                   " alone, which is missing. Build it with `npm run setup` where "
                                   "nvcc is installed (docs/gpu.md), or set CUTOUT_DEVICE=cpu."};
    }
    const ort::DeviceProperties& gpu = gpus_[device].device;
    if (gpu.compute_major < kLeastComputeMajor) {
      return {Code::kDevice, "GPU " + std::to_string(gpu.number) + " (" + gpu.name +
                                 ") has compute capability " + gpu.compute_capability() +
                                 ", and 8.0 or newer is needed. Choose another GPU with "
                                 "CUTOUT_DEVICE_ID, or set CUTOUT_DEVICE=cpu."};
    }
    return GpuNetwork::open(options, *memory, token, network);
  }
  if (!gpus_.empty()) CUTOUT_RETURN_IF_ERROR(Status(gpus_[device].provider));
  return ort::Network::open(matting_options(spec, device), token, network);
}

bool Engine::has_devices() const {
  return options_.provider != ort::Provider::kCpu || options_.device_ids.size() > 1;
}

class Engine::NetworkLoad {
 public:
  NetworkLoad(Engine& engine, std::string network) : engine_(engine), network_(std::move(network)) {
    const EngineOptions& options = engine.options_;
    const auto sizes = batch_sizes(options.max_batch).size() + 1;
    LoadStep first;
    if (engine.has_devices()) first.device_id = options.device_ids.front();
    first.steps = static_cast<int>(options.device_ids.size() * sizes);
    first.since = Clock::now();
    const std::lock_guard lock(engine_.mutex_);
    engine_.loading_[network_] = first;
  }
  ~NetworkLoad() {
    const std::lock_guard lock(engine_.mutex_);
    engine_.loading_.erase(network_);
  }
  NetworkLoad(const NetworkLoad&) = delete;
  NetworkLoad& operator=(const NetworkLoad&) = delete;

 private:
  Engine& engine_;
  std::string network_;
};

void Engine::note_step(const std::string& network, std::size_t device, int batch) {
  // The sizes up to this one: it, its halves and 1.
  int on_device = 1;
  for (int size = batch; size > 1; size /= 2) ++on_device;
  const std::lock_guard lock(mutex_);
  // Not there when a device that was lost opens the network again.
  const auto found = loading_.find(network);
  if (found == loading_.end()) return;
  LoadStep& step = found->second;
  if (has_devices()) step.device_id = options_.device_ids[device];
  step.batch = batch;
  const int each = step.steps / static_cast<int>(options_.device_ids.size());
  step.step = static_cast<int>(device) * each + on_device;
}

std::map<std::string, LoadStep> Engine::loading() {
  const std::lock_guard lock(mutex_);
  return loading_;
}

void Engine::load(const NetworkSpec& spec, Done<NetworkInfo> done) {
  const auto work = [this, spec](int, const CancelToken& token, NetworkInfo& info) -> Status {
    const NetworkLoad shown(*this, spec.name);
    Replicas::Options options;
    options.spec = spec;
    options.devices = options_.device_ids.size();
    options.open = [this, spec](std::size_t device, const CancelToken& stop,
                                std::unique_ptr<Network>& network) {
      // What jobs have left counts against the budget of the network.
      if (Device* const memory = devices_.memory(device)) memory->release_kept();
      return open_network(spec, device, stop, network);
    };
    options.batch_delay = std::chrono::milliseconds(options_.batch_delay_ms);
    std::shared_ptr<Replicas> loaded;
    CUTOUT_RETURN_IF_ERROR(Replicas::open(std::move(options), scheduler_.pool(), token, loaded));
    const Network& first = loaded->first();
    info = {spec.name, first.load_ms(), first.warm_up_ms()};
    // Memory of the warm-up run is kept for the first request.
    trim_heap_if_alone();
    // Closed without the lock: a check of a lost device may be opening the old one.
    const std::lock_guard lock(mutex_);
    loaded_.networks[spec.name].swap(loaded);
    return {};
  };
  push<NetworkInfo>({}, Executor::kPixels, work, std::move(done));
}

std::vector<DeviceWork> Engine::device_work() {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceWork> sum;
  for (const auto& [name, loaded] : loaded_.networks) {
    const std::vector<DeviceWork> stats = loaded->work();
    if (stats.empty()) continue;
    sum.resize(stats.size());
    for (std::size_t device = 0; device < stats.size(); ++device) sum[device] += stats[device];
  }
  return sum;
}

void Engine::load_subject_types(const SubjectTypesSpec& spec, Done<SubjectTypesInfo> done) {
  const auto work = [this, spec](int, const CancelToken& token, SubjectTypesInfo& info) -> Status {
    ort::NetworkOptions options = network_options(spec.detector);
    options.provider = ort::Provider::kCpu;  // the network may use the whole GPU
    options.outputs = 2;
    const auto types = std::make_shared<SubjectClassifier>();
    types->input = spec.detector.input;
    CUTOUT_RETURN_IF_ERROR(ort::Network::open(options, token, types->detector));
    CUTOUT_RETURN_IF_ERROR(Head::make(spec.head, types->head.emplace()));
    CUTOUT_RETURN_IF_ERROR(fit_classifier(*types));
    info = {feature_count(types->shape), types->detector->load_ms(), types->detector->warm_up_ms()};
    const std::lock_guard lock(mutex_);
    loaded_.subject_types = types;
    return {};
  };
  push<SubjectTypesInfo>({}, Executor::kPixels, work, std::move(done));
}

void Engine::load_selector(const SelectorSpec& spec, Done<SelectorInfo> done) {
  const auto work = [this, spec](int, const CancelToken& token, SelectorInfo& info) -> Status {
    const Clock::time_point start = Clock::now();
    std::shared_ptr<SubjectSelector> opened;
    CUTOUT_RETURN_IF_ERROR(SubjectSelector::open(spec, options_.intra_op_threads, opened));
    CUTOUT_RETURN_IF_ERROR(token.check());
    info = {opened->embedding_size() * sizeof(float), milliseconds(start, Clock::now())};
    trim_heap_if_alone();
    const std::lock_guard lock(mutex_);
    loaded_.selector = opened;
    return {};
  };
  push<SelectorInfo>({}, Executor::kPixels, work, std::move(done));
}

Engine::Loaded Engine::take_loaded() {
  const std::lock_guard lock(mutex_);
  return std::exchange(loaded_, {});
}

void Engine::unload(Done<std::monostate> done) {
  const auto loaded = std::make_shared<Loaded>(take_loaded());
  // Closing a session takes tens of milliseconds: not on the caller's thread.
  const auto work = [this, loaded](int, const CancelToken&, std::monostate&) -> Status {
    *loaded = {};
    release_memory();
    return {};
  };
  push<std::monostate>({}, Executor::kPixels, work, std::move(done));
}

std::shared_ptr<Replicas> Engine::find_network(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.networks.find(name);
  return found == loaded_.networks.end() ? nullptr : found->second;
}

template <typename Result, typename Part>
std::shared_ptr<Part> Engine::loaded(std::shared_ptr<Part> Loaded::*part, const Done<Result>& done,
                                     const char* message) {
  std::shared_ptr<Part> found;
  {
    const std::lock_guard lock(mutex_);
    found = loaded_.*part;
  }
  if (found == nullptr) done({Code::kModel, message}, {});
  return found;
}

void Engine::embed(std::uint64_t id, ConstImageView pixels, Done<Embedding> done) {
  const auto networks = loaded(&Loaded::selector, done, kNoSelector);
  if (networks == nullptr) return;
  const auto work = [this, pixels, networks](int, const CancelToken& token, Embedding& result) {
    ThreadPool pool(scheduler_.pool(), token);
    return networks->embed(pixels, token, pool, result.values);
  };
  push<Embedding>(id, Executor::kNetwork, work, std::move(done));
}

void Engine::select(std::uint64_t id, SelectJob job, Done<Selection> done) {
  const auto networks = loaded(&Loaded::selector, done, kNoSelector);
  if (networks == nullptr) return;
  const auto work = [job = std::move(job), networks](int, const CancelToken& token,
                                                     Selection& result) {
    return networks->select(job.embedding, job.points, token, result);
  };
  push<Selection>(id, Executor::kNetwork, work, std::move(done));
}

void Engine::matte(std::uint64_t id, MatteOrder order, Done<MatteResult> done) {
  const auto missing = [&done](const std::string& name) {
    done({Code::kModel, "No network named '" + name + "' is loaded."}, {});
  };
  const std::shared_ptr<Replicas> first = find_network(order.network);
  if (first == nullptr) return missing(order.network);
  const std::shared_ptr<Replicas> second = order.second ? find_network(*order.second) : nullptr;
  if (order.second && second == nullptr) return missing(*order.second);
  std::shared_ptr<const SubjectClassifier> types;
  if (order.plan.subject) {
    types = loaded(&Loaded::subject_types, done, "No subject classifier is loaded.");
    if (types == nullptr) return;
  }
  const auto work = [this, order = std::move(order), first, second, types, queued = Clock::now()](
                        int worker, const CancelToken& token, MatteResult& result) {
    result.queue_ms = milliseconds(queued, Clock::now());
    MatteRequest job{order.pixels, order.plan, *first, {}, {}, worker};
    if (second != nullptr) job.second = *second;
    if (types != nullptr) job.classifier = *types;
    ThreadPool pool(scheduler_.pool(), token);
    return devices_.run(job, pool, token, result);
  };
  push<MatteResult>(id, Executor::kNetwork, work, std::move(done));
}

void Engine::compose(std::uint64_t id, const ComposeJob& job, Done<ComposeSummary> done) {
  const auto work = [this, job](int, const CancelToken& token, ComposeSummary& result) {
    ThreadPool pool(scheduler_.pool(), token);
    result = cutout::compose(job.buffer, job.width, job.plan, pool);
    return Status();
  };
  push<ComposeSummary>(id, Executor::kPixels, work, std::move(done));
}

void Engine::encode_png(std::uint64_t id, PngJob job, Done<std::vector<std::uint8_t>> done) {
  const auto work = [this, job = std::move(job)](int, const CancelToken& token,
                                                 std::vector<std::uint8_t>& png) {
    ThreadPool pool(scheduler_.pool(), token);
    png = cutout::encode_png(job.pixels, job.options, pool);
    return token.check();
  };
  push<std::vector<std::uint8_t>>(id, Executor::kPixels, work, std::move(done));
}

void Engine::close(std::chrono::milliseconds grace) {
  scheduler_.close(grace);
  // Closes what it returns.
  static_cast<void>(take_loaded());
  // Once: an object that is collected later closes again, and what is kept then is other engines'.
  if (!memory_released_.exchange(true)) release_memory();
}

}  // namespace cutout
