#include "sched/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cutout {

std::size_t Scheduler::ExecutorState::waiting() const {
  const std::size_t jobs = running + queue.size();
  return jobs > threads ? jobs - threads : 0;
}

Scheduler::Scheduler(int workers, int pixel_threads, int queue_limit, IdleWork idle)
    : queue_limit_(static_cast<std::size_t>(queue_limit)),
      idle_(std::move(idle)),
      pool_(std::make_unique<ThreadPool>(pixel_threads)) {
  network_.threads = static_cast<std::size_t>(workers);
  pixels_.threads = static_cast<std::size_t>(pixel_threads);
  running_.reserve(network_.threads + pixels_.threads);
  workers_.reserve(network_.threads);
  try {
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
  } catch (...) {
    join_workers();
    throw;
  }
}

Scheduler::~Scheduler() { close(std::chrono::milliseconds(0)); }

Status Scheduler::push(Job job) {
  const Executor which = job.executor;
  const auto entry = std::make_shared<Entry>(std::move(job));
  const std::lock_guard lock(mutex_);
  if (closed_) return {Code::kClosed, "The engine is closed and takes no more jobs."};
  ExecutorState& executor = state(which);
  const bool waits = executor.running + executor.queue.size() >= executor.threads;
  if (waits && network_.waiting() + pixels_.waiting() >= queue_limit_) {
    return {Code::kQueueFull,
            "The queue is full: " + std::to_string(queue_limit_) + " jobs are waiting already."};
  }
  executor.queue.push_back(entry);
  if (which == Executor::kNetwork) {
    work_.notify_one();
  } else {
    // The task runs whichever job is first then; after a cancelled job it may find none.
    try {
      pool_->submit([this] { run_pixel_job(); });
    } catch (...) {
      executor.queue.pop_back();
      throw;
    }
  }
  return {};
}

bool Scheduler::cancel(std::uint64_t id) {
  EntryPointer removed;
  {
    const std::lock_guard lock(mutex_);
    const auto named = [id](const EntryPointer& entry) { return entry->job.id == id; };
    for (ExecutorState* executor : {&network_, &pixels_}) {
      const auto found = std::ranges::find_if(executor->queue, named);
      if (found == executor->queue.end()) continue;
      removed = std::move(*found);
      executor->queue.erase(found);
      break;
    }
    if (removed == nullptr) {
      // Under the lock, so that the job cannot end with another outcome meanwhile.
      const auto found = std::ranges::find_if(running_, named);
      if (found == running_.end()) return false;
      (*found)->token.stop(Code::kCancelled);
      return true;
    }
    removed->token.stop(Code::kCancelled);
    count(Code::kCancelled);
    changed_.notify_all();
  }
  removed->job.done(removed->token.check());
  return true;
}

SchedulerStats Scheduler::stats() const {
  const std::lock_guard lock(mutex_);
  SchedulerStats stats = ended_;
  stats.queued = static_cast<std::int64_t>(network_.queue.size() + pixels_.queue.size());
  stats.running = static_cast<std::int64_t>(running_.size());
  return stats;
}

void Scheduler::stop_admission() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void Scheduler::close(std::chrono::milliseconds grace) {
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    grace_until_ = std::min(grace_until_, Clock::now() + grace);
    changed_.notify_all();
    while (!drained() && Clock::now() < grace_until_) changed_.wait_until(lock, grace_until_);
    // A thread that takes a waiting job from now on ends it without running its work.
    for (const ExecutorState* executor : {&network_, &pixels_}) {
      for (const EntryPointer& entry : executor->queue) entry->token.stop(Code::kClosed);
    }
    for (const EntryPointer& entry : running_) entry->token.stop(Code::kClosed);
  }
  while (const EntryPointer entry = take_waiting()) entry->job.done(entry->token.check());
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return drained(); });
  }
  const std::lock_guard join_lock(join_mutex_);
  join_workers();
  pool_.reset();
}

Scheduler::EntryPointer Scheduler::take_waiting() {
  const std::lock_guard lock(mutex_);
  for (ExecutorState* executor : {&network_, &pixels_}) {
    if (executor->queue.empty()) continue;
    EntryPointer entry = std::move(executor->queue.front());
    executor->queue.pop_front();
    count(Code::kClosed);
    return entry;
  }
  return nullptr;
}

void Scheduler::join_workers() {
  {
    const std::lock_guard lock(mutex_);
    exiting_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : workers_) thread.join();
  workers_.clear();
}

bool Scheduler::drained() const {
  return running_.empty() && network_.queue.empty() && pixels_.queue.empty();
}

void Scheduler::worker_loop(int worker) {
  for (;;) {
    EntryPointer entry;
    {
      std::unique_lock lock(mutex_);
      wait_for_work(lock);
      if (network_.queue.empty()) return;
      entry = start_next(network_);
    }
    run(entry, worker);
  }
}

void Scheduler::wait_for_work(std::unique_lock<std::mutex>& lock) {
  while (!exiting_ && network_.queue.empty()) {
    // A running job sets a new time when it ends, on a worker that then returns here.
    if (idle_due_ == Clock::time_point::max() || network_.running > 0) {
      work_.wait(lock);
    } else if (Clock::now() < idle_due_) {
      work_.wait_until(lock, idle_due_);
    } else {
      idle_due_ = Clock::time_point::max();
      lock.unlock();
      idle_.work();
      lock.lock();
    }
  }
}

void Scheduler::run_pixel_job() {
  EntryPointer entry;
  {
    const std::lock_guard lock(mutex_);
    if (pixels_.queue.empty()) return;
    entry = start_next(pixels_);
  }
  run(entry, -1);
}

Scheduler::EntryPointer Scheduler::start_next(ExecutorState& executor) {
  EntryPointer entry = std::move(executor.queue.front());
  executor.queue.pop_front();
  ++executor.running;
  running_.push_back(entry);
  return entry;
}

void Scheduler::run(const EntryPointer& entry, int worker) {
  Status status = entry->token.check();
  if (status.ok()) status = caught([&] { return entry->job.work(worker, entry->token); });
  {
    const std::lock_guard lock(mutex_);
    // A stopped job ends with the reason, whatever its work returned: cancel() guarantees it.
    if (entry->token.stopped()) status = entry->token.check();
    --state(entry->job.executor).running;
    if (idle_.work) {
      // A worker that waits without a timeout must be woken; one with an earlier timeout checks
      // again.
      if (idle_due_ == Clock::time_point::max()) work_.notify_one();
      idle_due_ = Clock::now() + idle_.after;
    }
    std::erase(running_, entry);
    count(status.code());
    changed_.notify_all();
  }
  entry->job.done(std::move(status));
}

void Scheduler::count(Code code) {
  switch (code) {
    case Code::kOk:
      ++ended_.done;
      break;
    case Code::kCancelled:
    case Code::kClosed:
      ++ended_.cancelled;
      break;
    default:
      ++ended_.failed;
  }
}

}  // namespace cutout
