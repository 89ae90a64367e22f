#include "pipeline/replicas.h"

#include <utility>

namespace cutout {

Status Replicas::open(Options options, ThreadPool& pool, const CancelToken& token,
                      std::shared_ptr<Replicas>& replicas) {
  const std::shared_ptr<Replicas> opened(new Replicas(std::move(options)));
  for (std::size_t device = 0; device < opened->options_.devices; ++device) {
    LoadedNetwork& on = *opened->networks_.emplace_back(std::make_unique<LoadedNetwork>());
    on.spec = opened->options_.spec;
    CUTOUT_RETURN_IF_ERROR(opened->options_.open(device, token, on.network));
  }
  for (std::size_t device = 0; device < opened->options_.devices; ++device)
    opened->start_batcher(device, pool);
  replicas = opened;
  return {};
}

void Replicas::start_batcher(std::size_t device, ThreadPool& pool) {
  LoadedNetwork& on = *networks_[device];
  std::vector<BatchBucket> buckets;
  for (const BatchTiming& timing : on.network->timings()) {
    const std::chrono::duration<double, std::milli> latency(timing.ms);
    buckets.push_back({timing.size, std::chrono::duration_cast<Clock::duration>(latency)});
  }
  if (buckets.empty()) return;
  BatchDevice work;
  work.first_check = options_.first_check;
  work.execute = [&on, &pool](std::size_t size, std::span<const int> slots,
                              const CancelToken& stop) {
    return on.network->run_batch(size, slots, stop, pool);
  };
  work.recover = [this, device](const CancelToken& stop) { return recover(device, stop); };
  on.batcher.emplace(std::move(buckets), options_.batch_delay, std::move(work));
}

std::shared_lock<std::shared_mutex> Replicas::use(std::size_t device) {
  LoadedNetwork& on = *networks_[device];
  std::shared_lock<std::shared_mutex> held(on.use, std::try_to_lock);
  // After the lock: a device that works now is not opened again until the job has ended.
  if (held && on.batcher && !on.batcher->works()) held.unlock();
  return held;
}

void Replicas::report_loss(std::size_t device, const Status& status) {
  std::optional<Batcher>& batcher = networks_[device]->batcher;
  if (batcher) batcher->report_loss(status);
}

std::vector<DeviceWork> Replicas::work() const {
  std::vector<DeviceWork> all;
  for (const auto& on : networks_) {
    if (on->batcher) all.push_back(on->batcher->stats());
  }
  return all;
}

Status Replicas::recover(std::size_t device, const CancelToken& token) {
  LoadedNetwork& on = *networks_[device];
  const std::lock_guard lock(on.use);
  if (on.network != nullptr && on.network->check(token).ok()) return {};
  // First, because the device may not hold it twice.
  on.network.reset();
  return options_.open(device, token, on.network);
}

}  // namespace cutout
