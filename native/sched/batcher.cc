#include "sched/batcher.h"

#include <algorithm>
#include <stop_token>
#include <utility>

namespace cutout {

namespace {

/// Weight of earlier estimates of a latency after one more run.
constexpr Clock::rep kDecay = 7;

}  // namespace

DeviceWork& DeviceWork::operator+=(const DeviceWork& other) {
  batches.resize(std::max(batches.size(), other.batches.size()));
  for (std::size_t i = 0; i < other.batches.size(); ++i) batches[i] += other.batches[i];
  for (std::size_t i = 0; i < waits.size(); ++i) waits[i] += other.waits[i];
  waited_ms += other.waited_ms;
  losses += other.losses;
  if (!other.lost.ok()) lost = other.lost;
  return *this;
}

struct Batcher::Waiter {
  int slot = 0;
  Clock::time_point arrival;
  Clock::time_point started;
  std::condition_variable done;
  std::optional<Status> status;
};

Batcher::Batcher(std::vector<BatchBucket> buckets, Clock::duration max_delay, BatchDevice device)
    : device_(std::move(device)), queue_(std::move(buckets), max_delay) {
  stats_.batches.resize(queue_.buckets().back().size + 1);
  thread_ = std::thread([this] { loop(); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (running_ != nullptr) running_->stop(Code::kClosed);
  }
  changed_.notify_one();
  thread_.join();
}

Status Batcher::run(int slot, const CancelToken& token, Clock::duration& waited) {
  Waiter waiter;
  waiter.slot = slot;
  waiter.arrival = Clock::now();
  waiter.started = waiter.arrival;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    const auto entry = waiters_.emplace(id, &waiter).first;
    try {
      if (!queue_.push({id, waiter.arrival})) {
        waiters_.erase(entry);
        return stats_.lost;
      }
    } catch (...) {
      waiters_.erase(entry);
      throw;
    }
  }
  changed_.notify_one();
  {
    // Destroyed, and with it any call of cancel(), before the waiter.
    const std::stop_callback stop(token.stop_token(), [this, id] { cancel(id); });
    std::unique_lock lock(mutex_);
    waiter.done.wait(lock, [&waiter] { return waiter.status.has_value(); });
  }
  waited = waiter.started - waiter.arrival;
  if (token.stopped()) return token.check();
  return std::move(*waiter.status);
}

void Batcher::report_loss(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.is_lost() || reported_) return;
    reported_ = status;
  }
  changed_.notify_one();
}

bool Batcher::works() const {
  const std::lock_guard lock(mutex_);
  return !queue_.is_lost() && !reported_;
}

DeviceWork Batcher::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Batcher::answer(std::uint64_t id, const Status& status) {
  const auto found = waiters_.find(id);
  Waiter& waiter = *found->second;
  waiter.status = status;  // first, because it may fail
  waiters_.erase(found);
  // Under the lock, so that the waiter still exists.
  waiter.done.notify_one();
}

void Batcher::answer(const BatchQueue::Ended& ended, const Status& status) {
  for (const std::uint64_t id : ended.runs) answer(id, status);
  for (const std::uint64_t id : ended.cancelled) answer(id, Status(Code::kCancelled));
}

/// There was no memory to go on: answers everything.
void Batcher::fail() {
  queue_.forget();
  while (!waiters_.empty()) answer(waiters_.begin()->first, Status(Code::kOutOfMemory));
}

void Batcher::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  switch (queue_.cancel(id)) {
    case BatchQueue::Cancelled::kRemoved:
      answer(id, Status(Code::kCancelled));
      // What it was waited for may have changed.
      changed_.notify_one();
      break;
    case BatchQueue::Cancelled::kBatchAbandoned:
      running_->stop(Code::kCancelled);
      break;
    default:
      break;
  }
}

void Batcher::loop() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    try {
      step(lock);
    } catch (const std::bad_alloc&) {
      fail();
    }
  }
}

/// Runs the next batch, checks the lost device, or waits for work.
void Batcher::step(std::unique_lock<std::mutex>& lock) {
  if (reported_) return lose(*reported_);
  if (queue_.is_lost()) return recover(lock);
  const BatchQueue::Step next = queue_.next(Clock::now());
  if (!next.members.empty()) return execute(next, lock);
  if (next.wake) {
    changed_.wait_until(lock, *next.wake);
  } else {
    changed_.wait(lock);
  }
}

void Batcher::execute(const BatchQueue::Step& batch, std::unique_lock<std::mutex>& lock) {
  const Clock::time_point start = Clock::now();
  std::vector<int> slots;
  for (const std::uint64_t id : batch.members) {
    Waiter& waiter = *waiters_.at(id);
    waiter.started = start;
    slots.push_back(waiter.slot);
    const double ms = milliseconds(waiter.arrival, start);
    const auto bound = std::ranges::lower_bound(kWaitBoundsMs, ms);
    ++stats_.waits[static_cast<std::size_t>(bound - kWaitBoundsMs.begin())];
    stats_.waited_ms += ms;
  }
  ++stats_.batches[slots.size()];
  const BatchBucket bucket = queue_.buckets()[batch.bucket];
  CancelToken token;
  running_ = &token;
  lock.unlock();
  const Status status = caught([&] { return device_.execute(bucket.size, slots, token); });
  const Clock::duration took = Clock::now() - start;
  lock.lock();
  running_ = nullptr;
  if (status.code() == Code::kDevice) return lose(status);
  if (status.code() == Code::kDeviceMemory && queue_.shrink(bucket.size)) {
    for (const std::uint64_t id : queue_.retry()) answer(id, Status(Code::kCancelled));
    return;
  }
  // Networks that compute no more than the members take less time for fewer.
  const bool tells = slots.size() == bucket.size || took > bucket.latency;
  if (status.ok() && tells)
    queue_.set_latency(bucket.size, (kDecay * bucket.latency + took) / (kDecay + 1));
  answer(queue_.finish(), status);
}

void Batcher::lose(const Status& status) {
  stats_.lost = status;
  ++stats_.losses;
  pause_ = device_.first_check;
  answer(queue_.lose(), status);
  reported_.reset();
}

/// Waits until the lost device is to be checked, and checks it.
void Batcher::recover(std::unique_lock<std::mutex>& lock) {
  if (!device_.recover) {
    changed_.wait(lock, [this] { return closing_; });
    return;
  }
  if (changed_.wait_for(lock, pause_, [this] { return closing_; })) return;
  CancelToken token;
  running_ = &token;
  lock.unlock();
  Status status = caught([&] { return device_.recover(token); });
  lock.lock();
  running_ = nullptr;
  if (status.ok())
    queue_.restore();
  else
    pause_ = std::min(2 * pause_, device_.longest_check);
  stats_.lost = std::move(status);
}

}  // namespace cutout
