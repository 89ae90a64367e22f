#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cutout {

/// Threads for pixel work. One pool an engine; networks have ONNX Runtime's own threads.
///
/// `parallel_for` splits rows among the caller and idle pool threads. The caller always works too,
/// so it may be called from a pool thread, and a pool of 0 threads runs everything in the caller.
/// Results never depend on the number of threads: a body writes only what belongs to its own
/// indices.
class ThreadPool {
 public:
  /// Throws std::system_error when a thread cannot be started; those started before have ended.
  explicit ThreadPool(int threads);
  ~ThreadPool();  // finishes submitted tasks, then joins
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls body(begin, end) over disjoint ranges that cover [0, count), each at most `grain` long.
  /// Returns when all are done. When `body` throws, ranges that have not begun are left out and the
  /// first exception is thrown here. Throws nothing else: without memory to ask for help the caller
  /// works alone.
  void parallel_for(std::size_t count, std::size_t grain,
                    const std::function<void(std::size_t, std::size_t)>& body);

  /// Queues a task; tasks start in the order they came. `task` must not throw. Throws
  /// std::bad_alloc when there is no memory to queue it.
  void submit(std::function<void()> task);

  [[nodiscard]] int threads() const { return static_cast<int>(threads_.size()); }

 private:
  struct Loop;

  /// A loop that as many threads as possible were asked to help with; null without memory.
  std::shared_ptr<Loop> shared_loop(std::size_t count, std::size_t grain, std::size_t helpers,
                                    const std::function<void(std::size_t, std::size_t)>& body);
  void loop();
  void join();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cutout
