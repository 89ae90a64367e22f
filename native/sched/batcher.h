#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "sched/batch_queue.h"

namespace cutout {

struct BatcherStats {
  /// Batches by the number of their members; index 0 is unused.
  std::vector<std::uint64_t> batches;
};

/// One run of a network, from the thread that wants it.
struct BatchRun {
  std::uint64_t flow = 0;  // WaitingRun::flow
  int slot = 0;            // what the device works on; not used by another run meanwhile
};

/// Runs on a device, on a thread of its own, the batches that the policy (batch_policy.h) decides
/// from what BatchQueue stores. All runs have one shape; they come from many threads.
///
/// | run        | token stopped                                                                |
/// |------------|------------------------------------------------------------------------------|
/// | waiting    | run() returns the reason at once                                             |
/// | in a batch | run() returns the reason when the batch has ended; the others are unaffected. |
/// |            | When all members are stopped, the batch's own token is                        |
class Batcher {
 public:
  /// Runs the slots of a batch, of a bucket of `size` images, on the device. Called by one thread
  /// at a time, without a lock held.
  using Execute =
      std::function<Status(std::size_t size, std::span<const int> slots, const CancelToken& token)>;

  /// `buckets` as for next_batch(), with estimates that are corrected by each run. Throws
  /// std::system_error when the thread cannot be started.
  Batcher(std::vector<BatchBucket> buckets, BatchLimits limits, Execute execute);
  /// No run() is in progress.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Waits until the run is done; `waited` is the time until its batch was started. kDeadline if it
  /// cannot be done by the token's deadline: then it was not started. What `execute` returned is
  /// the result of all members. After kDevice, which means that the device has stopped working,
  /// every run fails with that status.
  Status run(const BatchRun& run, const CancelToken& token, Clock::duration& waited);

  [[nodiscard]] BatcherStats stats() const;

 private:
  struct Waiter;

  void loop();
  bool step(std::unique_lock<std::mutex>& lock);
  void execute(const BatchQueue::Batch& batch, std::unique_lock<std::mutex>& lock);
  void answer(std::uint64_t id, const Status& status);
  void answer_all(const Status& status);
  void cancel(std::uint64_t id);

  const Execute execute_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable work_;
  BatchQueue queue_;
  std::map<std::uint64_t, Waiter*> waiters_;  // owned by run()
  std::uint64_t next_id_ = 0;
  CancelToken* running_ = nullptr;  // of the batch in progress
  Status lost_;                     // why the device is lost
  BatcherStats stats_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace cutout
