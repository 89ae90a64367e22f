#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <utility>

namespace cutout {

/// Shared by the caller of parallel_for and its helpers. A helper that starts after the last range
/// was taken never touches `body`, which lives on the caller's stack.
struct ThreadPool::Loop {
  std::atomic<std::size_t> next{0};
  std::size_t count = 0;
  std::size_t grain = 1;
  const std::function<void(std::size_t, std::size_t)>* body = nullptr;
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable done;
  std::size_t finished = 0;   // indices, guarded by mutex
  std::exception_ptr reason;  // the first, guarded by mutex

  void work() noexcept {
    for (;;) {
      const std::size_t begin = next.fetch_add(grain);
      if (begin >= count) return;
      const std::size_t end = std::min(begin + grain, count);
      if (!failed) run(begin, end);
      const std::lock_guard lock(mutex);
      finished += end - begin;
      if (finished == count) done.notify_all();
    }
  }

  void run(std::size_t begin, std::size_t end) noexcept {
    try {
      (*body)(begin, end);
    } catch (...) {
      failed = true;
      const std::lock_guard lock(mutex);
      if (reason == nullptr) reason = std::current_exception();
    }
  }

  /// The first exception, once every range is done.
  std::exception_ptr wait() {
    std::unique_lock lock(mutex);
    done.wait(lock, [this] { return finished == count; });
    return std::exchange(reason, nullptr);
  }
};

ThreadPool::ThreadPool(int threads) {
  threads_.reserve(static_cast<std::size_t>(std::max(threads, 0)));
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
  } catch (...) {
    join();
    throw;
  }
}

ThreadPool::ThreadPool(ThreadPool& shared, const CancelToken& token)
    : shared_(&shared), token_(&token) {}

ThreadPool::~ThreadPool() { join(); }

void ThreadPool::join() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::submit(std::function<void()> task) {
  if (shared_ != nullptr) return shared_->submit(std::move(task));
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
  if (shared_ != nullptr) {
    shared_->parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
      if (const Status status = token_->check(); !status.ok()) throw Stopped(status.code());
      body(begin, end);
    });
    return;
  }
  if (count == 0) return;
  grain = std::max<std::size_t>(grain, 1);
  const std::size_t ranges = (count + grain - 1) / grain;
  const std::size_t helpers = std::min<std::size_t>(threads_.size(), ranges - 1);
  const std::shared_ptr<Loop> loop =
      helpers > 0 ? shared_loop(count, grain, helpers, body) : nullptr;
  if (loop == nullptr) {
    for (std::size_t begin = 0; begin < count; begin += grain) {
      body(begin, std::min(begin + grain, count));
    }
    return;
  }
  wake_.notify_all();
  loop->work();
  if (const std::exception_ptr reason = loop->wait()) std::rethrow_exception(reason);
}

std::shared_ptr<ThreadPool::Loop> ThreadPool::shared_loop(
    std::size_t count, std::size_t grain, std::size_t helpers,
    const std::function<void(std::size_t, std::size_t)>& body) {
  std::shared_ptr<Loop> loop;
  try {
    loop = std::make_shared<Loop>();
    loop->count = count;
    loop->grain = grain;
    loop->body = &body;
    // In front of other tasks: the caller is waiting for these.
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < helpers; ++i) tasks_.push_front([loop] { loop->work(); });
  } catch (const std::bad_alloc&) {
    // The helpers queued so far take part; the caller does the rest.
  }
  return loop;
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
