#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "core/thread_pool.h"

namespace cutout {

/// Where a job runs: on an inference worker or on a thread of the pixel pool.
enum class Executor { kNetwork, kPixels };

struct Job {
  /// The number that cancel() takes; a job without one ends by itself or with close().
  std::optional<std::uint64_t> id;
  Executor executor = Executor::kNetwork;
  /// The work; checks the token between its steps. `worker` is 0 .. workers - 1 on the network
  /// executor, never shared by two running jobs, and -1 on the pixel executor. Exceptions become
  /// the job's outcome (caught() of core/status.h).
  std::function<Status(int worker, const CancelToken& token)> work;
  /// Called exactly once if push() returned ok, by the thread that ended the job, without a lock
  /// held. Must not throw.
  std::function<void(Status)> done;
};

struct SchedulerStats {
  std::int64_t queued = 0;
  std::int64_t running = 0;
  std::int64_t done = 0;
  std::int64_t failed = 0;
  std::int64_t cancelled = 0;
};

/// Work that is done once after no network job has run for `after`.
struct IdleWork {
  std::chrono::milliseconds after{0};
  std::function<void()> work;  // on a worker; must not throw and must not call the scheduler
};

/// Bounded first-in, first-out queue in front of inference workers and a pixel pool. Every function
/// may be called from any thread that does not run a job.
///
/// | state of a job | cancel(), close() after its grace                                          |
/// |----------------|----------------------------------------------------------------------------|
/// | waiting        | removed, done() at once                                                    |
/// | running        | token stopped; done() with that reason as soon as the work returns, even if |
/// |                | it still succeeds                                                          |
class Scheduler {
 public:
  /// `queue_limit` jobs may wait for a thread; jobs that find a free thread do not count.
  /// Throws std::system_error when a thread cannot be started; those started before have ended.
  Scheduler(int workers, int pixel_threads, int queue_limit, IdleWork idle = {});
  ~Scheduler();  // close(0)
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Queues the job. kQueueFull or kClosed if it is refused, std::bad_alloc when there is no memory
  /// to queue it; done() is never called then. After ok only the work itself allocates.
  Status push(Job job);

  /// False when no job of this id is waiting or running.
  bool cancel(std::uint64_t id);

  [[nodiscard]] SchedulerStats stats() const;

  /// Refuses new jobs from now on.
  void stop_admission();

  /// Refuses new jobs, gives the others `grace` to finish, stops the rest with kClosed and joins
  /// all threads. May be called several times, also while another call waits: the shortest grace
  /// counts.
  void close(std::chrono::milliseconds grace);

  /// Returns the pool for work inside a job. Destroyed by close().
  [[nodiscard]] ThreadPool& pool() { return *pool_; }

 private:
  struct Entry {
    explicit Entry(Job given) : job(std::move(given)) {}
    Job job;
    CancelToken token;
  };
  using EntryPointer = std::shared_ptr<Entry>;

  struct ExecutorState {
    std::size_t threads = 0;
    std::size_t running = 0;
    std::deque<EntryPointer> queue;
    [[nodiscard]] std::size_t waiting() const;
  };

  ExecutorState& state(Executor executor) {
    return executor == Executor::kNetwork ? network_ : pixels_;
  }
  void worker_loop(int worker);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void run_pixel_job();
  EntryPointer take_waiting();
  void join_workers();
  EntryPointer start_next(ExecutorState& executor);  // mutex_ held, queue not empty
  void run(const EntryPointer& entry, int worker);
  void count(Code code);  // mutex_ held
  [[nodiscard]] bool drained() const;

  const std::size_t queue_limit_;
  const IdleWork idle_;
  mutable std::mutex mutex_;  // guards everything below but the threads
  std::condition_variable work_;
  std::condition_variable changed_;  // a job ended, or close() was called
  ExecutorState network_;
  ExecutorState pixels_;
  std::vector<EntryPointer> running_;  // has room for one job a thread
  SchedulerStats ended_;               // done, failed, cancelled
  bool closed_ = false;
  bool exiting_ = false;
  Clock::time_point idle_due_ = Clock::time_point::max();
  Clock::time_point grace_until_ = Clock::time_point::max();

  std::mutex join_mutex_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::thread> workers_;
};

}  // namespace cutout
