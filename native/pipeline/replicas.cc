#include "pipeline/replicas.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cutout {

Status Replicas::open(ort::Network& first, std::size_t devices, Open open, ThreadPool& pool,
                      const CancelToken& token, std::unique_ptr<Replicas>& replicas) {
  std::unique_ptr<Replicas> opened(new Replicas(first, std::move(open), pool));
  opened->networks_.resize(devices);
  for (std::size_t device = 1; device < devices; ++device)
    CUTOUT_RETURN_IF_ERROR(opened->reopen(device, token));
  replicas = std::move(opened);
  return {};
}

ort::Network& Replicas::on(std::size_t device) const {
  const std::unique_ptr<ort::Network>& own = networks_[device];
  return own ? *own : first_;
}

std::vector<BatchBucket> Replicas::buckets() const {
  std::vector<BatchBucket> common;
  for (std::size_t device = 0; device < networks_.size(); ++device) {
    const std::vector<ort::BatchTiming>& timings = on(device).timings();
    if (device == 0) common.resize(timings.size());
    common.resize(std::min(common.size(), timings.size()));
    for (std::size_t i = 0; i < common.size(); ++i) {
      const std::chrono::duration<double, std::milli> latency(timings[i].ms);
      common[i].size = timings[i].size;
      common[i].latency =
          std::max(common[i].latency, std::chrono::duration_cast<Clock::duration>(latency));
    }
  }
  return common;
}

Status Replicas::run(std::size_t device, std::size_t size, std::span<const int> slots,
                     const CancelToken& token) {
  ort::Network& network = on(device);
  const bool opened = std::ranges::any_of(
      network.timings(), [size](const ort::BatchTiming& timing) { return timing.size == size; });
  if (!opened) {
    return {Code::kDeviceMemory,
            "There was not enough device memory for batches of " + std::to_string(size) + "."};
  }
  return network.run_batch(size, slots, first_, token, pool_);
}

Status Replicas::recover(std::size_t device, const CancelToken& token) {
  if (networks_[device] != nullptr || device == 0) {
    if (on(device).check(token).ok()) return {};
  }
  return reopen(device, token);
}

Status Replicas::reopen(std::size_t device, const CancelToken& token) {
  // First, because the device may not hold it twice.
  networks_[device].reset();
  return open_(device, token, networks_[device]);
}

}  // namespace cutout
