#include "sched/batcher.h"

#include <optional>
#include <stop_token>
#include <utility>

namespace cutout {

namespace {

constexpr std::size_t kDevice = 0;
constexpr std::size_t kShape = 0;

/// Weight of earlier estimates of a latency after one more run.
constexpr Clock::rep kDecay = 7;

}  // namespace

struct Batcher::Waiter {
  int slot = 0;
  std::condition_variable done;
  std::optional<Status> status;
  Clock::time_point started;
};

Batcher::Batcher(std::vector<BatchBucket> buckets, BatchLimits limits, Execute execute)
    : execute_(std::move(execute)), queue_(1, limits) {
  stats_.batches.resize(buckets.back().size + 1);
  queue_.add_shape(std::move(buckets));
  thread_ = std::thread([this] { loop(); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_.notify_all();
  thread_.join();
}

Status Batcher::run(const BatchRun& run, const CancelToken& token, Clock::duration& waited) {
  Waiter waiter;
  waiter.slot = run.slot;
  const Clock::time_point arrival = Clock::now();
  waiter.started = arrival;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    const auto entry = waiters_.emplace(id, &waiter).first;
    try {
      if (!queue_.push({id, run.flow, kShape, arrival, token.deadline()})) {
        waiters_.erase(entry);
        return lost_;
      }
    } catch (...) {
      waiters_.erase(entry);
      throw;
    }
  }
  work_.notify_one();
  {
    // Destroyed, and with it any call of cancel(), before the waiter.
    const std::stop_callback stop(token.stop_token(), [this, id] { cancel(id); });
    std::unique_lock lock(mutex_);
    waiter.done.wait(lock, [&waiter] { return waiter.status.has_value(); });
  }
  waited = waiter.started - arrival;
  if (token.stopped()) return token.check();
  return std::move(*waiter.status);
}

BatcherStats Batcher::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Batcher::answer(std::uint64_t id, const Status& status) {
  const auto found = waiters_.find(id);
  Waiter& waiter = *found->second;
  waiters_.erase(found);
  waiter.status = status;
  // Under the lock, so that the waiter still exists.
  waiter.done.notify_one();
}

void Batcher::answer_all(const Status& status) {
  while (!waiters_.empty()) answer(waiters_.begin()->first, status);
}

void Batcher::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  switch (queue_.cancel(id)) {
    case BatchQueue::Cancelled::kRemoved:
      answer(id, Status(Code::kCancelled));
      // What it was waited for may have changed.
      work_.notify_one();
      break;
    case BatchQueue::Cancelled::kBatchAbandoned:
      if (running_ != nullptr) running_->stop(Code::kCancelled);
      break;
    default:
      break;
  }
}

void Batcher::loop() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    try {
      if (!step(lock)) return;
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();
      queue_.clear();
      answer_all(Status(Code::kOutOfMemory));
    }
  }
}

/// Starts a batch and waits for its end, or waits for work.
bool Batcher::step(std::unique_lock<std::mutex>& lock) {
  const BatchQueue::Step step = queue_.next(Clock::now());
  for (const std::uint64_t id : step.refused) {
    answer(id, {Code::kDeadline, "The job was not started: it would have missed its deadline."});
  }
  if (!step.started.empty()) {
    execute(step.started.front(), lock);
  } else if (step.wake) {
    work_.wait_until(lock, *step.wake);
  } else {
    work_.wait(lock);
  }
  return !closing_;
}

void Batcher::execute(const BatchQueue::Batch& batch, std::unique_lock<std::mutex>& lock) {
  const Clock::time_point start = Clock::now();
  std::vector<int> slots;
  for (const std::uint64_t id : batch.members) {
    Waiter& waiter = *waiters_.at(id);
    waiter.started = start;
    slots.push_back(waiter.slot);
  }
  ++stats_.batches[slots.size()];
  const BatchBucket bucket = queue_.buckets(kShape)[batch.bucket];
  CancelToken token;
  running_ = &token;
  lock.unlock();
  const Status status = caught([&] { return execute_(bucket.size, slots, token); });
  const Clock::duration took = Clock::now() - start;
  lock.lock();
  running_ = nullptr;
  if (status.ok()) {
    queue_.set_latency(kShape, batch.bucket, (kDecay * bucket.latency + took) / (kDecay + 1));
  }
  const bool lost = status.code() == Code::kDevice;
  if (lost) lost_ = status;
  const BatchQueue::Ended ended = lost ? queue_.lose(kDevice) : queue_.finish(kDevice);
  for (const std::uint64_t id : ended.completed) answer(id, status);
  for (const std::uint64_t id : ended.cancelled) answer(id, Status(Code::kCancelled));
}

}  // namespace cutout
