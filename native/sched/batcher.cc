#include "sched/batcher.h"

#include <algorithm>
#include <stop_token>
#include <utility>

namespace cutout {

namespace {

constexpr std::size_t kShape = 0;

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
  std::optional<std::size_t> device;  // that its batch was given to
  std::condition_variable done;
  std::optional<Status> status;
};

Batcher::Batcher(std::vector<BatchBucket> buckets, BatchLimits limits, BatchDevices devices)
    : work_(std::move(devices)), queue_(work_.count, limits), devices_(work_.count) {
  for (Device& device : devices_) device.stats.batches.resize(buckets.back().size + 1);
  queue_.add_shape(std::move(buckets));
  try {
    for (std::size_t device = 0; device < devices_.size(); ++device)
      devices_[device].thread = std::thread([this, device] { loop(device); });
  } catch (...) {
    close();
    throw;
  }
}

Batcher::~Batcher() { close(); }

void Batcher::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (Device& device : devices_) {
      if (device.running != nullptr) device.running->stop(Code::kClosed);
    }
  }
  changed_.notify_all();
  for (Device& device : devices_) {
    if (device.thread.joinable()) device.thread.join();
  }
}

Status Batcher::run(const BatchRun& run, const CancelToken& token, Clock::duration& waited) {
  Waiter waiter;
  waiter.slot = run.slot;
  waiter.arrival = Clock::now();
  waiter.started = waiter.arrival;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    const auto entry = waiters_.emplace(id, &waiter).first;
    try {
      if (!queue_.push({id, run.flow, kShape, waiter.arrival, token.deadline()})) {
        waiters_.erase(entry);
        return devices_.front().stats.lost;
      }
    } catch (...) {
      waiters_.erase(entry);
      throw;
    }
  }
  // All, because the thread that is notified may be that of a lost device.
  changed_.notify_all();
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

void Batcher::report_loss(std::size_t device, const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.is_lost(device) || devices_[device].reported) return;
    devices_[device].reported = status;
  }
  changed_.notify_all();
}

bool Batcher::works(std::size_t device) const {
  const std::lock_guard lock(mutex_);
  return !queue_.is_lost(device) && !devices_[device].reported;
}

std::vector<DeviceWork> Batcher::stats() const {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceWork> all;
  for (const Device& device : devices_) all.push_back(device.stats);
  return all;
}

void Batcher::answer(std::uint64_t id, const Status& status) {
  const auto found = waiters_.find(id);
  Waiter& waiter = *found->second;
  waiter.status = status;  // first, because it may fail
  waiters_.erase(found);
  // Under the lock, so that the waiter still exists.
  waiter.done.notify_one();
}

/// There was no memory to go on: answers everything but what other devices are working on.
void Batcher::fail(std::size_t device) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const bool works = i != device && (devices_[i].assigned || devices_[i].running != nullptr);
    if (!works) queue_.forget(i);
  }
  devices_[device].assigned.reset();
  queue_.forget_waiting();
  for (auto entry = waiters_.begin(); entry != waiters_.end();) {
    const auto [id, waiter] = *entry++;
    if (!waiter->device || *waiter->device == device) answer(id, Status(Code::kOutOfMemory));
  }
}

void Batcher::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  switch (queue_.cancel(id)) {
    case BatchQueue::Cancelled::kRemoved:
      answer(id, Status(Code::kCancelled));
      // What it was waited for may have changed.
      changed_.notify_all();
      break;
    case BatchQueue::Cancelled::kBatchAbandoned: {
      CancelToken* const running = devices_[*waiters_.at(id)->device].running;
      if (running != nullptr) running->stop(Code::kCancelled);
      break;
    }
    default:
      break;
  }
}

void Batcher::loop(std::size_t device) {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    try {
      step(device, lock);
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();
      fail(device);
    }
  }
}

/// Runs the batch of this device, gives idle devices batches, or waits for work.
void Batcher::step(std::size_t device, std::unique_lock<std::mutex>& lock) {
  if (devices_[device].reported) return lose(device, *devices_[device].reported);
  if (queue_.is_lost(device)) return recover(device, lock);
  if (devices_[device].assigned) return execute(device, lock);
  BatchQueue::Step step = queue_.next(Clock::now());
  for (const std::uint64_t id : step.refused) {
    answer(id, {Code::kDeadline, "The job was not started: it would have missed its deadline."});
  }
  for (BatchQueue::Batch& batch : step.started) {
    for (const std::uint64_t id : batch.members) waiters_.at(id)->device = batch.device;
    if (batch.device != device) changed_.notify_all();
    devices_[batch.device].assigned = std::move(batch);
  }
  if (devices_[device].assigned) return;
  if (step.wake) {
    changed_.wait_until(lock, *step.wake);
  } else {
    changed_.wait(lock);
  }
}

void Batcher::execute(std::size_t device, std::unique_lock<std::mutex>& lock) {
  Device& on = devices_[device];
  const BatchQueue::Batch batch = std::move(*on.assigned);
  on.assigned.reset();
  const Clock::time_point start = Clock::now();
  std::vector<int> slots;
  for (const std::uint64_t id : batch.members) {
    Waiter& waiter = *waiters_.at(id);
    waiter.started = start;
    slots.push_back(waiter.slot);
    const double ms = milliseconds(waiter.arrival, start);
    const auto bound = std::ranges::lower_bound(kWaitBoundsMs, ms);
    ++on.stats.waits[static_cast<std::size_t>(bound - kWaitBoundsMs.begin())];
    on.stats.waited_ms += ms;
  }
  ++on.stats.batches[slots.size()];
  const BatchBucket bucket = queue_.buckets(kShape)[batch.bucket];
  CancelToken token;
  on.running = &token;
  lock.unlock();
  const Status status = caught([&] { return work_.execute(device, bucket.size, slots, token); });
  const Clock::duration took = Clock::now() - start;
  lock.lock();
  on.running = nullptr;
  if (status.code() == Code::kDevice) return lose(device, status);
  if (status.code() == Code::kDeviceMemory && queue_.shrink(kShape, bucket.size)) {
    BatchQueue::Ended ended = queue_.retry(device);
    for (const std::uint64_t id : ended.completed) waiters_.at(id)->device.reset();
    for (const std::uint64_t id : ended.cancelled) answer(id, Status(Code::kCancelled));
    return;
  }
  if (status.ok()) {
    queue_.set_latency(kShape, bucket.size, (kDecay * bucket.latency + took) / (kDecay + 1));
  }
  const BatchQueue::Ended ended = queue_.finish(device);
  for (const std::uint64_t id : ended.completed) answer(id, status);
  for (const std::uint64_t id : ended.cancelled) answer(id, Status(Code::kCancelled));
}

void Batcher::lose(std::size_t device, const Status& status) {
  Device& lost = devices_[device];
  lost.stats.lost = status;
  ++lost.stats.losses;
  lost.pause = work_.first_check;
  lost.assigned.reset();
  const BatchQueue::Lost members = queue_.lose(device);
  for (const std::uint64_t id : members.failed) answer(id, status);
  for (const std::uint64_t id : members.cancelled) answer(id, Status(Code::kCancelled));
  for (const std::uint64_t id : members.retried) waiters_.at(id)->device.reset();
  lost.reported.reset();
  changed_.notify_all();
}

/// Waits until a lost device is to be checked, and checks it.
void Batcher::recover(std::size_t device, std::unique_lock<std::mutex>& lock) {
  if (!work_.recover) {
    changed_.wait(lock, [this] { return closing_; });
    return;
  }
  Device& lost = devices_[device];
  if (changed_.wait_for(lock, lost.pause, [this] { return closing_; })) return;
  CancelToken token;
  lost.running = &token;
  lock.unlock();
  Status status = caught([&] { return work_.recover(device, token); });
  lock.lock();
  lost.running = nullptr;
  if (status.ok())
    queue_.restore(device);
  else
    lost.pause = std::min(2 * lost.pause, work_.longest_check);
  lost.stats.lost = std::move(status);
}

}  // namespace cutout
