#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cancel.h"

namespace cutout {

/// Threads for pixel work. One pool for each engine; networks run on ONNX Runtime's own threads.
///
/// `parallel_for` splits a range among the caller and idle pool threads. The caller always takes
/// part, so it may be a pool thread itself, and a pool of 0 threads runs everything in the caller.
/// A body writes only what belongs to its own indices, so results do not depend on the number of
/// threads.
class ThreadPool {
 public:
  /// Throws std::system_error when a thread cannot be started, after joining those that were.
  explicit ThreadPool(int threads);
  /// Makes the pool of one job from the threads of `shared`, whose loops end early when the job has
  /// to end. Both are borrowed.
  ThreadPool(ThreadPool& shared, const CancelToken& token);
  ~ThreadPool();  // finishes submitted tasks, then joins
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls body(begin, end) for disjoint ranges of at most `grain` indices that cover [0, count),
  /// and returns when all are done. When `body` throws, ranges that have not begun are skipped and
  /// the first exception is rethrown here. Throws nothing else: without memory to ask for help the
  /// caller works alone. In the pool of a job, Stopped counts as an exception of `body`: the token
  /// is checked before each range.
  void parallel_for(std::size_t count, std::size_t grain,
                    const std::function<void(std::size_t, std::size_t)>& body);

  /// parallel_for() of single indices: calls each(i).
  template <typename Each>
  void for_each(std::size_t count, std::size_t grain, const Each& each) {
    parallel_for(count, grain, [&each](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) each(i);
    });
  }

  /// Queues a task, first in, first out; runs it in the caller if the pool has no threads. `task`
  /// must not throw. Throws std::bad_alloc when there is no memory to queue it.
  void submit(std::function<void()> task);

 private:
  struct Loop;

  /// A loop that up to `helpers` threads were asked to help with; null without memory.
  std::shared_ptr<Loop> shared_loop(std::size_t count, std::size_t grain, std::size_t helpers,
                                    const std::function<void(std::size_t, std::size_t)>& body);
  void loop();
  void join();

  ThreadPool* const shared_ = nullptr;
  const CancelToken* const token_ = nullptr;  // not null where shared_ is not
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cutout
