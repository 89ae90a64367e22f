#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/image_view.h"
#include "core/status.h"
#include "matte/apply.h"
#include "ort/network.h"
#include "pipeline/compose.h"
#include "pipeline/matte.h"
#include "png/encode.h"
#include "sched/scheduler.h"

namespace cutout {

/// Names, units and limits of the fields: src/engine/types.ts.
struct EngineOptions {
  std::string runtime_path;
  ort::Provider provider = ort::Provider::kCpu;
  int device_id = 0;
  int workers = 1;
  int intra_op_threads = 1;
  int pixel_threads = 1;
  int queue_limit = 0;
  int idle_release_ms = 0;
};

struct NetworkInfo {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  double load_ms = 0;
  double warm_up_ms = 0;
};

/// A detector without a head gives features only.
struct SubjectTypesSpec {
  NetworkSpec detector;
  std::optional<HeadWeights> head;
};

struct SubjectTypesInfo {
  std::size_t features = 0;
  double load_ms = 0;
  double warm_up_ms = 0;
};

struct DescribeJob {
  ConstImageView pixels;
  Matte matte;
};

struct Description {
  std::vector<float> features;
  std::optional<Subject> subject;  // with a head
};

struct ComposeJob {
  std::span<std::uint8_t> buffer;  // starts with the picture, has room for the canvas
  int width = 0;                   // of the picture
  int height = 0;
  ComposePlan plan;
};

struct ComposeResult {
  ComposeSummary summary;
  double queue_ms = 0;
  double compose_ms = 0;
};

struct PngJob {
  ConstImageView pixels;
  bool alpha_only = false;
  int effort = 1;
  std::vector<std::uint8_t> icc;
  std::optional<std::array<std::uint32_t, 2>> pixels_per_metre;
};

/// The engine without Node: networks, queue, threads. Results arrive through a callback that is
/// called exactly once, from any thread; pixels are borrowed until then. Callbacks must not throw
/// and must not call the engine. Without memory to take a job over a function throws
/// std::bad_alloc, and the callback is never called.
class Engine {
 public:
  template <typename Result>
  using Done = std::function<void(Status, Result)>;
  using Deadline = std::optional<Clock::time_point>;

  /// kRuntime when the library cannot be opened or a thread cannot be started, kOutOfMemory.
  /// Options are in range.
  static Status create(const EngineOptions& options, std::unique_ptr<Engine>& engine);

  /// Opens, checks and warms a network on the pixel lane. A name loaded before is replaced; jobs
  /// that run on the old network finish on it.
  void load(const NetworkSpec& spec, Done<NetworkInfo> done);

  /// As load(), for what tells subject types apart; replaces what was loaded before.
  void load_subject_types(const SubjectTypesSpec& spec, Done<SubjectTypesInfo> done);

  /// Drops what load() and load_subject_types() brought and gives its memory back to the system, on
  /// the pixel lane. Jobs that were given before keep it until they are done.
  void unload(std::function<void(Status)> done);

  /// Subject type and features of a picture under a given matte, without the network.
  void describe(std::uint64_t id, const DescribeJob& job, Deadline deadline,
                Done<Description> done);

  void matte(std::uint64_t id, ImageView pixels, const MattePlan& plan, const std::string& network,
             Deadline deadline, Done<MatteResult> done);

  void compose(std::uint64_t id, const ComposeJob& job, Deadline deadline,
               Done<ComposeResult> done);

  void encode_png(std::uint64_t id, PngJob job, Deadline deadline,
                  Done<std::vector<std::uint8_t>> done);

  bool cancel(std::uint64_t id) { return scheduler_.cancel(id); }
  [[nodiscard]] SchedulerStats stats() const { return scheduler_.stats(); }
  /// Memory of networks that is not in use and kept for their next run: of all engines, at most.
  [[nodiscard]] static std::size_t kept_bytes();
  void stop_admission() { scheduler_.stop_admission(); }
  /// Scheduler::close, then frees the networks.
  void close(std::chrono::milliseconds grace);

 private:
  explicit Engine(const EngineOptions& options);

  template <typename Result>
  void push(std::optional<std::uint64_t> id, Lane lane, Deadline deadline,
            std::function<Status(int, const CancelToken&, Result&)> work, Done<Result> done);
  [[nodiscard]] ort::NetworkOptions network_options(const NetworkSpec& spec) const;
  std::shared_ptr<const SubjectTypes> subject_types();

  const EngineOptions options_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LoadedNetwork>> networks_;  // guarded by mutex_
  std::shared_ptr<const SubjectTypes> subject_types_;               // guarded by mutex_
  Scheduler scheduler_;
};

}  // namespace cutout
