#include "pipeline/device_pool.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <shared_mutex>
#include <system_error>
#include <utility>

#include "cuda/library.h"
#include "ort/runtime_log.h"
#include "pipeline/cpu_backend.h"
#include "pipeline/device_backend.h"

namespace cutout {

Status open_gpu_kernels(const std::string& file, const cuda::Table*& kernels) {
  kernels = nullptr;
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return cuda::open_library(file, kernels);
  const std::string line =
      "Networks run on the GPU by ONNX Runtime alone, the steps around them on the CPU: there is "
      "no " +
      file + " (docs/gpu.md).";
  ort::log_line(ort::kWarning, line.c_str());
  return {};
}

/// A job's device and its networks there, from the choice to the end of the job.
class DevicePool::DeviceLease {
 public:
  /// Chooses the device with the fewest jobs of those on which the job's networks work.
  DeviceLease(DevicePool& devices, const MatteRequest& job) : devices_(devices) {
    const std::lock_guard lock(devices.mutex_);
    std::vector<std::size_t> order(devices.devices_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&devices](std::size_t device) {
      return std::ranges::count(devices.devices_[device].slots, true);
    });
    for (const std::size_t device : order) {
      network_ = job.network.use(device);
      if (!network_) continue;
      if (job.second) second_ = job.second->get().use(device);
      if (job.second && !second_) continue;
      // The lowest, so that there are no more than jobs at a time.
      std::vector<bool>& slots = devices.devices_[device].slots;
      const auto free = std::ranges::find(slots, false);
      slot_ = static_cast<int>(free - slots.begin());
      if (free == slots.end()) slots.push_back(false);
      slots[static_cast<std::size_t>(slot_)] = true;
      device_ = device;
      return;
    }
  }
  ~DeviceLease() {
    if (!device_) return;
    for (LoadedNetwork* const open : open_) open->network->close_slot(slot_);
    const std::lock_guard lock(devices_.mutex_);
    devices_.devices_[*device_].slots[static_cast<std::size_t>(slot_)] = false;
  }
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;

  /// None where no device works.
  [[nodiscard]] std::optional<std::size_t> device() const { return device_; }
  /// The slot of the networks on the device.
  [[nodiscard]] int slot() const { return slot_; }
  /// Opens the slot of a network until the end of the job.
  Status open_slot(LoadedNetwork& network) {
    open_.push_back(&network);
    return network.network->open_slot(slot_);
  }

 private:
  DevicePool& devices_;
  std::vector<LoadedNetwork*> open_;
  std::optional<std::size_t> device_;
  int slot_ = 0;
  std::shared_lock<std::shared_mutex> network_;
  std::shared_lock<std::shared_mutex> second_;
};

DevicePool::DevicePool(const cuda::Table* kernels, std::span<const int> numbers,
                       std::span<const std::shared_ptr<ort::DeviceMemoryBudget>> budgets)
    : devices_(numbers.size()) {
  if (kernels == nullptr) return;
  for (std::size_t device = 0; device < numbers.size(); ++device)
    devices_[device].memory = std::make_unique<Device>(*kernels, numbers[device],
                                                       budgets.empty() ? nullptr : budgets[device]);
}

std::unique_ptr<Backend> DevicePool::open_backend(std::size_t device, ThreadPool& pool) const {
  if (Device* const on = memory(device)) return make_device_backend(*on, pool);
  return make_cpu_backend(pool);
}

Status DevicePool::run(const MatteRequest& job, ThreadPool& pool, const CancelToken& token,
                       MatteResult& result) {
  Status lost;
  for (int attempt = 0; attempt < 2; ++attempt) {
    DeviceLease lease(*this, job);
    if (!lease.device()) break;
    const std::size_t device = *lease.device();
    MatteJob on_device{job.pixels, job.plan,       job.network.on(device),
                       {},         job.classifier, job.detector_slot};
    if (job.second) on_device.second = job.second->get().on(device);
    MatteResult made;
    const std::unique_ptr<Backend> backend = open_backend(device, pool);
    Status status = lease.open_slot(on_device.network);
    if (status.ok() && on_device.second) status = lease.open_slot(*on_device.second);
    if (status.ok()) status = make_matte(on_device, {*backend, pool, lease.slot(), token}, made);
    if (status.code() != Code::kDevice) {
      made.queue_ms += result.queue_ms;
      result = std::move(made);
      return status;
    }
    job.network.report_loss(device, status);
    if (job.second) job.second->get().report_loss(device, status);
    lost = std::move(status);
  }
  if (!lost.ok()) return lost;
  // The reason of the network that is lost.
  for (Replicas* network : {&job.network, job.second ? &job.second->get() : nullptr}) {
    if (network == nullptr) continue;
    for (DeviceWork& work : network->work()) {
      if (!work.lost.ok()) return std::move(work.lost);
    }
  }
  return {Code::kDevice, "No GPU works."};
}

void DevicePool::release_kept() noexcept {
  for (const PooledDevice& device : devices_) {
    if (device.memory != nullptr) device.memory->release_kept();
  }
}

}  // namespace cutout
