#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "core/cancel.h"
#include "core/network.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "pipeline/matte_job.h"
#include "sched/batcher.h"

namespace cutout {

/// One network on every device of an engine, each with a slot for each of its jobs and, where it
/// was timed when it was opened, a batcher. A job uses one of them, from its beginning to its end.
/// Devices are numbered from 0, in the order of the engine's options.
class Replicas {
 public:
  /// Opens the network on a device.
  using Open =
      std::function<Status(std::size_t device, const CancelToken&, std::unique_ptr<Network>&)>;

  struct Options {
    NetworkSpec spec;
    std::size_t devices = 1;
    Open open;
    Clock::duration batch_delay{0};  // BatchQueue: max_delay
    Clock::duration first_check = BatchDevice{}.first_check;
  };

  /// The pool copies inputs and outputs of batches that lie on the host.
  static Status open(Options options, ThreadPool& pool, const CancelToken& token,
                     std::shared_ptr<Replicas>& replicas);

  /// Holds the network on this device for a job; holds nothing where the device does not work.
  [[nodiscard]] std::shared_lock<std::shared_mutex> use(std::size_t device);
  /// To be used while use() holds it.
  [[nodiscard]] LoadedNetwork& on(std::size_t device) { return *networks_[device]; }
  /// The network on the first device, before the first job.
  [[nodiscard]] const Network& first() const { return *networks_.front()->network; }

  /// A job has seen that the device has stopped working.
  void report_loss(std::size_t device, const Status& status);
  /// What the batcher of each device does; empty without batchers.
  [[nodiscard]] std::vector<DeviceWork> work() const;

 private:
  explicit Replicas(Options options) : options_(std::move(options)) {}
  /// Runs the network on a device that was lost; if that fails, closes it there and opens it again.
  /// Jobs that hold it end first.
  Status recover(std::size_t device, const CancelToken& token);
  void start_batcher(std::size_t device, ThreadPool& pool);

  const Options options_;
  std::vector<std::unique_ptr<LoadedNetwork>> networks_;
};

}  // namespace cutout
