#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace cutout {

namespace {

/// Shared by the caller of parallel_for and its helpers. A helper that starts after the caller has
/// taken the last range finds nothing left and never touches `body`, which lives on the caller's
/// stack.
struct Loop {
  std::atomic<std::size_t> next{0};
  std::size_t count = 0;
  std::size_t grain = 1;
  const std::function<void(std::size_t, std::size_t)>* body = nullptr;
  std::mutex mutex;
  std::condition_variable done;
  std::size_t finished = 0;  // indices, guarded by mutex

  void work() {
    for (;;) {
      const std::size_t begin = next.fetch_add(grain);
      if (begin >= count) return;
      const std::size_t end = std::min(begin + grain, count);
      (*body)(begin, end);
      const std::lock_guard lock(mutex);
      finished += end - begin;
      if (finished == count) done.notify_all();
    }
  }
};

}  // namespace

ThreadPool::ThreadPool(int threads) {
  threads_.reserve(static_cast<std::size_t>(std::max(threads, 0)));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::submit(std::function<void()> task) {
  if (threads_.empty()) {
    task();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::parallel_for(std::size_t count, std::size_t grain,
                              const std::function<void(std::size_t, std::size_t)>& body) {
  if (count == 0) return;
  grain = std::max<std::size_t>(grain, 1);
  const std::size_t ranges = (count + grain - 1) / grain;
  const std::size_t helpers = std::min<std::size_t>(threads_.size(), ranges - 1);
  if (helpers == 0) {
    for (std::size_t begin = 0; begin < count; begin += grain) {
      body(begin, std::min(begin + grain, count));
    }
    return;
  }
  const auto loop = std::make_shared<Loop>();
  loop->count = count;
  loop->grain = grain;
  loop->body = &body;
  {
    // In front of whole tasks: somebody is already waiting for these.
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < helpers; ++i) tasks_.push_front([loop] { loop->work(); });
  }
  wake_.notify_all();
  loop->work();
  std::unique_lock lock(loop->mutex);
  loop->done.wait(lock, [&] { return loop->finished == count; });
}

void ThreadPool::loop() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace cutout
