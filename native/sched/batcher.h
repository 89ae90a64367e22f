#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "sched/batch_queue.h"

namespace cutout {

/// Upper bounds of the histogram of waits, in milliseconds; longer ones are in one more class.
inline constexpr std::array kWaitBoundsMs{0.5,  1.0,  2.0,   4.0,   8.0,   16.0,
                                          32.0, 64.0, 128.0, 256.0, 512.0, 1024.0};

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

/// What a batcher works with. Its thread calls the functions without a lock held.
struct BatchDevice {
  /// Runs the slots of a batch, of a bucket of `size` images.
  std::function<Status(std::size_t size, std::span<const int> slots, const CancelToken& token)>
      execute;
  /// Makes the lost device work again, or says why it does not; empty: it stays lost.
  std::function<Status(const CancelToken& token)> recover;
  /// The time from the loss of the device to the first recover(); doubled after each failure.
  Clock::duration first_check = std::chrono::seconds(5);
  Clock::duration longest_check = std::chrono::minutes(5);
};

/// Runs on a device the batches that BatchQueue decides on, on a thread of its own. The runs are
/// those of one network at one input size; they come from many threads. Each network has a batcher
/// on each device (pipeline/replicas.h).
///
/// | run        | token stopped                                                                |
/// |------------|------------------------------------------------------------------------------|
/// | waiting    | run() returns the reason at once                                             |
/// | in a batch | run() returns the reason when the batch has ended; the others are unaffected. |
/// |            | When all members are stopped, the batch's own token is                        |
///
/// | `execute` returns | the members                                                            |
/// |-------------------|------------------------------------------------------------------------|
/// | kDevice           | it is the result of all of them and of all runs that wait; the device is |
/// |                   | lost                                                                    |
/// | kDeviceMemory     | of more than the smallest bucket: they run in smaller ones, and so does  |
/// |                   | everything from then on                                                 |
/// | anything else     | it is the result of all of them                                         |
class Batcher {
 public:
  /// `buckets` as for BatchQueue, with estimates that are corrected by each run. Throws
  /// std::system_error when the thread cannot be started.
  Batcher(std::vector<BatchBucket> buckets, Clock::duration max_delay, BatchDevice device);
  /// No run() is in progress.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Runs the slot, which no other run uses meanwhile, and waits until that is done; `waited` is
  /// the time until its (last) batch was started. kDevice at once while the device is lost.
  Status run(int slot, const CancelToken& token, Clock::duration& waited);

  /// The device has stopped working, as was seen outside of a batch: it is lost as if its next one
  /// had said so. Without effect on one that is lost.
  void report_loss(const Status& status);
  [[nodiscard]] bool works() const;

  [[nodiscard]] DeviceWork stats() const;

 private:
  struct Waiter;

  void loop();
  void step(std::unique_lock<std::mutex>& lock);
  void execute(const BatchQueue::Step& batch, std::unique_lock<std::mutex>& lock);
  void lose(const Status& status);
  void recover(std::unique_lock<std::mutex>& lock);
  void fail();
  void answer(std::uint64_t id, const Status& status);
  void answer(const BatchQueue::Ended& ended, const Status& status);
  void cancel(std::uint64_t id);

  const BatchDevice device_;
  mutable std::mutex mutex_;  // guards everything below but the thread
  std::condition_variable changed_;
  BatchQueue queue_;
  std::map<std::uint64_t, Waiter*> waiters_;  // owned by run()
  std::uint64_t next_id_ = 0;
  CancelToken* running_ = nullptr;  // of the batch or check in progress
  Clock::duration pause_{0};        // until the next check, while the device is lost
  std::optional<Status> reported_;  // its loss, to be taken note of by the thread
  DeviceWork stats_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace cutout
