#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/image_view.h"
#include "core/status.h"
#include "ort/device_memory_budget.h"
#include "ort/gpu_runtime.h"
#include "ort/network.h"
#include "pipeline/compose.h"
#include "pipeline/device_pool.h"
#include "pipeline/matte.h"
#include "pipeline/replicas.h"
#include "pipeline/subject_selector.h"
#include "png/encode.h"
#include "sched/scheduler.h"

namespace cutout {

/// Names, units and limits of the fields: src/engine/types.ts.
struct EngineOptions {
  std::string runtime_path;
  ort::Provider provider = ort::Provider::kCpu;
  std::vector<int> device_ids{0};      // not empty; on the CPU one copy of the networks each
  std::vector<std::string> libraries;  // ort::open_device()
  std::string plugin;                  // ort::open_device()
  std::string kernels_path;            // libcutout_cuda.so; empty: the one beside the addon
  int workers = 1;
  int intra_op_threads = 1;
  int pixel_threads = 1;
  int queue_limit = 0;
  int idle_release_ms = 0;
  std::uint64_t device_memory = 0;  // bytes of each GPU that may be taken; 0: most of it
  int max_batch = 1;
  int batch_delay_ms = 0;
};

/// What of a network is being opened: a session for each size of batch on each device, one after
/// the other.
struct LoadStep {
  std::optional<int> device_id;  // none for the only copy on the CPU
  int batch = 1;                 // images
  int step = 1;                  // 1 .. steps; sizes that do not fit are left out
  int steps = 1;
  Clock::time_point since;  // the first step
};

struct NetworkInfo {
  std::string name;
  double load_ms = 0;
  double warm_up_ms = 0;
};

struct SubjectTypesSpec {
  NetworkSpec detector;
  HeadWeights head;
};

struct SubjectTypesInfo {
  std::size_t features = 0;
  double load_ms = 0;
  double warm_up_ms = 0;
};

struct SelectorInfo {
  std::size_t embedding_bytes = 0;
  double load_ms = 0;
};

struct Embedding {
  std::vector<float> values;
};

struct SelectJob {
  std::span<const float> embedding;
  std::vector<SelectorPoint> points;
};

/// A matte by the loaded network of a name; with a name in `second`, that one looks where the first
/// is in doubt.
struct MatteOrder {
  ImageView pixels;
  MattePlan plan;
  std::string network;
  std::optional<std::string> second;
};

struct ComposeJob {
  std::span<std::uint8_t> buffer;  // the image at its front; large enough for the canvas
  int width = 0;                   // of the image
  ComposePlan plan;
};

struct PngJob {
  ConstImageView pixels;
  PngOptions options;
};

/// Networks, queue and threads, without Node. A result is passed to a callback, exactly once, on
/// any thread; pixels are borrowed until then. Callbacks must not throw and must not call the
/// engine. A function throws std::bad_alloc when there is no memory to queue its job; the callback
/// is not called then.
class Engine {
 public:
  template <typename Result>
  using Done = std::function<void(Status, Result)>;

  /// kRuntime when the library cannot be opened or a thread cannot be started; kProvider, kDriver
  /// or kDevice when the GPU cannot be used; kOutOfMemory. The options have been checked. On a GPU
  /// the steps around the network run there too if there is a library of kernels (`kernels_path`);
  /// if there is none, a line of the log says so, and if it is another version, that is kProvider.
  static Status create(const EngineOptions& options, std::unique_ptr<Engine>& engine);

  /// Opens, checks and warms up a network on the pixel executor. Replaces a network of the same
  /// name; jobs that run on that finish on it.
  void load(const NetworkSpec& spec, Done<NetworkInfo> done);

  /// Loads the classifier of subject types as load() does a network, of which there is one.
  void load_subject_types(const SubjectTypesSpec& spec, Done<SubjectTypesInfo> done);

  /// Loads the selector as load() does a network, of which there is one. Always on the CPU; not
  /// warmed up.
  void load_selector(const SelectorSpec& spec, Done<SelectorInfo> done);

  /// Unloads all networks and returns their memory to the system, on the pixel executor. Jobs
  /// queued before keep theirs until they are done.
  void unload(Done<std::monostate> done);

  void embed(std::uint64_t id, ConstImageView pixels, Done<Embedding> done);

  void select(std::uint64_t id, SelectJob job, Done<Selection> done);

  void matte(std::uint64_t id, MatteOrder order, Done<MatteResult> done);

  void compose(std::uint64_t id, const ComposeJob& job, Done<ComposeSummary> done);

  void encode_png(std::uint64_t id, PngJob job, Done<std::vector<std::uint8_t>> done);

  bool cancel(std::uint64_t id) { return scheduler_.cancel(id); }
  /// The GPUs and their libraries, in the order of the options; empty with the provider kCpu.
  [[nodiscard]] const std::vector<ort::GpuRuntime>& gpus() const { return gpus_; }
  [[nodiscard]] const std::vector<int>& device_ids() const { return options_.device_ids; }
  [[nodiscard]] SchedulerStats stats() const { return scheduler_.stats(); }
  /// What networks and jobs take of each GPU, in the order of the options; empty with the provider
  /// kCpu.
  [[nodiscard]] const std::vector<std::shared_ptr<ort::DeviceMemoryBudget>>& budgets() const {
    return budgets_;
  }
  /// The matting networks that load() is opening, by name.
  [[nodiscard]] std::map<std::string, LoadStep> loading();
  /// What the batchers of the loaded networks do, for each device; empty if none has a batcher.
  [[nodiscard]] std::vector<DeviceWork> device_work();
  void stop_admission() { scheduler_.stop_admission(); }
  /// Scheduler::close, then unloads the networks and, the first time, returns memory that is kept.
  void close(std::chrono::milliseconds grace);

 private:
  struct Loaded {
    std::map<std::string, std::shared_ptr<Replicas>> networks;
    std::shared_ptr<const SubjectClassifier> subject_types;
    std::shared_ptr<const SubjectSelector> selector;
  };

  /// `kernels` of the GPUs; null: the steps around the network run on the CPU.
  Engine(const EngineOptions& options, std::vector<ort::GpuRuntime> gpus,
         const cuda::Table* kernels);

  /// Queues a job, whose work writes the result.
  template <typename Result>
  void push(std::optional<std::uint64_t> id, Executor executor,
            std::function<Status(int, const CancelToken&, Result&)> work, Done<Result> done);
  /// Memory of the host and of the GPU that is kept for the next jobs.
  void release_memory();
  /// In a job that opened a network: returns what opening it left on the heap, unless other jobs
  /// run, whose allocations would wait.
  void trim_heap_if_alone();
  [[nodiscard]] ort::NetworkOptions network_options(const NetworkSpec& spec) const;
  /// The options of a network that mattes are made with, on a device.
  [[nodiscard]] ort::NetworkOptions matting_options(const NetworkSpec& spec, std::size_t device);
  /// Opens a network that mattes are made with on a device.
  Status open_network(const NetworkSpec& spec, std::size_t device, const CancelToken& token,
                      std::unique_ptr<Network>& network);
  /// Everything that is loaded. To be closed without the lock: a check of a lost device may take as
  /// long as opening a network.
  Loaded take_loaded();
  /// Null when no network of that name is loaded.
  std::shared_ptr<Replicas> find_network(const std::string& name);
  /// Shows a network among loading() while it exists.
  class NetworkLoad;
  void note_step(const std::string& network, std::size_t device, int batch);
  /// Whether there are GPUs, or copies on the CPU in their place.
  [[nodiscard]] bool has_devices() const;
  /// A part of what is loaded; null, and `done` called with kModel and the message, without one.
  template <typename Result, typename Part>
  std::shared_ptr<Part> loaded(std::shared_ptr<Part> Loaded::*part, const Done<Result>& done,
                               const char* message);

  const EngineOptions options_;
  const std::vector<ort::GpuRuntime> gpus_;
  const std::vector<std::shared_ptr<ort::DeviceMemoryBudget>> budgets_;
  DevicePool devices_;
  std::mutex mutex_;
  Loaded loaded_;                              // guarded by mutex_
  std::map<std::string, LoadStep> loading_;    // guarded by mutex_
  std::atomic<bool> memory_released_ = false;  // by close()
  Scheduler scheduler_;
};

}  // namespace cutout
