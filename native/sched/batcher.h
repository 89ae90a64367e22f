#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "sched/batch_queue.h"

namespace cutout {

/// Upper bounds of the histogram of waits, in milliseconds; longer ones are in one more class.
inline constexpr std::array kWaitBoundsMs{0.5,  1.0,  2.0,   4.0,   8.0,   16.0,
                                          32.0, 64.0, 128.0, 256.0, 512.0, 1024.0};

/// What one device has done.
struct DeviceWork {
  /// Batches by the number of their members; index 0 is unused.
  std::vector<std::uint64_t> batches;
  /// Members by how long they waited for their batch: classes of kWaitBoundsMs, not cumulative.
  std::array<std::uint64_t, kWaitBoundsMs.size() + 1> waits{};
  double waited_ms = 0;
  /// How often the device was lost.
  std::uint64_t losses = 0;
  /// Why the device takes no batches now; ok: it does.
  Status lost;

  /// Adds what the device has done for another network.
  DeviceWork& operator+=(const DeviceWork& other);
};

/// One run of a network, from the thread that wants it.
struct BatchRun {
  std::uint64_t flow = 0;  // WaitingRun::flow
  int slot = 0;            // what the device works on; not used by another run meanwhile
};

/// What a batcher works with. Each device has a thread of its own, which calls the functions
/// without a lock held; those of different devices run at the same time.
struct BatchDevices {
  std::size_t count = 1;
  /// Runs the slots of a batch, of a bucket of `size` images.
  std::function<Status(std::size_t device, std::size_t size, std::span<const int> slots,
                       const CancelToken& token)>
      execute;
  /// Makes a lost device work again, or says why it does not; empty: it stays lost.
  std::function<Status(std::size_t device, const CancelToken& token)> recover;
  /// From the loss of a device to the first recover(); doubled after each failure.
  Clock::duration first_check = std::chrono::seconds(5);
  Clock::duration longest_check = std::chrono::minutes(5);
};

/// Runs on devices the batches that the policy (batch_policy.h) decides from what BatchQueue
/// stores. All its devices take from one queue; an engine has a batcher for each of its
/// devices (pipeline/replicas.h). All runs have one shape; they come from many threads.
///
/// | run        | token stopped                                                                |
/// |------------|------------------------------------------------------------------------------|
/// | waiting    | run() returns the reason at once                                             |
/// | in a batch | run() returns the reason when the batch has ended; the others are unaffected. |
/// |            | When all members are stopped, the batch's own token is                        |
///
/// | `execute` returns | the members                                                            |
/// |-------------------|------------------------------------------------------------------------|
/// | kDevice           | the device is lost: they run once more, on another one; without one, and |
/// |                   | for members that were lost before, kDevice is their result              |
/// | kDeviceMemory     | of more than the smallest bucket: they run in smaller ones, and so does  |
/// |                   | everything from then on                                                 |
/// | anything else     | it is the result of all of them                                         |
class Batcher {
 public:
  /// `buckets` as for next_batch(), with estimates that are corrected by each run. Throws
  /// std::system_error when a thread cannot be started.
  Batcher(std::vector<BatchBucket> buckets, BatchLimits limits, BatchDevices devices);
  /// No run() is in progress.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Waits until the run is done; `waited` is the time until its (last) batch was started.
  /// kDeadline if it cannot be done by the token's deadline: then it was not started. kDevice at
  /// once while all devices are lost.
  Status run(const BatchRun& run, const CancelToken& token, Clock::duration& waited);

  /// A device has stopped working, as was seen outside of a batch: it is lost as if its next one
  /// had said so. Without effect on one that is lost.
  void report_loss(std::size_t device, const Status& status);
  [[nodiscard]] bool works(std::size_t device) const;

  /// In the order of the devices.
  [[nodiscard]] std::vector<DeviceWork> stats() const;

 private:
  struct Waiter;
  struct Device {
    std::optional<BatchQueue::Batch> assigned;  // to be taken by its thread
    CancelToken* running = nullptr;             // of its batch or check in progress
    Clock::duration pause{0};                   // until the next check, while it is lost
    std::optional<Status> reported;             // its loss, to be taken note of by its thread
    DeviceWork stats;
    std::thread thread;
  };

  void close();
  void loop(std::size_t device);
  void step(std::size_t device, std::unique_lock<std::mutex>& lock);
  void execute(std::size_t device, std::unique_lock<std::mutex>& lock);
  void lose(std::size_t device, const Status& status);
  void recover(std::size_t device, std::unique_lock<std::mutex>& lock);
  void fail(std::size_t device);
  void answer(std::uint64_t id, const Status& status);
  void cancel(std::uint64_t id);

  const BatchDevices work_;
  mutable std::mutex mutex_;  // guards everything below but the threads
  std::condition_variable changed_;
  BatchQueue queue_;
  std::map<std::uint64_t, Waiter*> waiters_;  // owned by run()
  std::uint64_t next_id_ = 0;
  std::vector<Device> devices_;
  bool closing_ = false;
};

}  // namespace cutout
