#include "ort/device_memory_budget.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

namespace cutout::ort {

namespace {

constexpr int kSuccess = 0;

std::string megabytes(std::uint64_t bytes) {
  return std::to_string((bytes + 500'000) / 1'000'000) + " MB";
}

}  // namespace

std::optional<DeviceUse> device_use(int number, std::span<const char* const> libraries) {
  for (const char* library : libraries) {
    void* const opened = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (opened == nullptr) continue;
    const auto set = reinterpret_cast<int (*)(int)>(dlsym(opened, "cudaSetDevice"));
    const auto get = reinterpret_cast<int (*)(int*)>(dlsym(opened, "cudaGetDevice"));
    const auto info =
        reinterpret_cast<int (*)(std::size_t*, std::size_t*)>(dlsym(opened, "cudaMemGetInfo"));
    if (set == nullptr || get == nullptr || info == nullptr) continue;
    // The calling thread's device is left as it was.
    int before = 0;
    if (get(&before) != kSuccess || set(number) != kSuccess) return {};
    std::size_t free = 0;
    std::size_t total = 0;
    const bool known = info(&free, &total) == kSuccess;
    set(before);
    if (!known) return {};
    return DeviceUse{total - free, total};
  }
  return {};
}

DeviceMemoryBudget::Reservation& DeviceMemoryBudget::Reservation::operator=(
    Reservation&& other) noexcept {
  if (this == &other) return *this;
  release();
  memory_ = std::move(other.memory_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void DeviceMemoryBudget::Reservation::release() {
  if (memory_ == nullptr) return;
  const std::lock_guard lock(memory_->mutex_);
  memory_->sessions_ -= bytes_;
  memory_.reset();
}

std::uint64_t DeviceMemoryBudget::reserved() const {
  const std::lock_guard lock(mutex_);
  return sessions_ + jobs_;
}

bool DeviceMemoryBudget::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  // Until a session was measured, 0 is a limit that is not known.
  if (limit_ > 0 && (sessions_ + jobs_ > limit_ || bytes > limit_ - sessions_ - jobs_))
    return false;
  jobs_ += bytes;
  return true;
}

void DeviceMemoryBudget::release(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  jobs_ -= bytes;
}

std::uint64_t DeviceMemoryBudget::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::uint64_t DeviceMemoryBudget::left() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t all = sessions_ + jobs_;
  return limit_ > all ? limit_ - all : 0;
}

Status DeviceMemoryBudget::reserve_session(const std::shared_ptr<DeviceMemoryBudget>& memory,
                                           const std::string& what, std::uint64_t expected,
                                           const std::function<Status()>& open,
                                           Reservation& reservation) {
  const std::optional<DeviceUse> before = memory == nullptr ? std::nullopt : memory->measure_();
  if (!before) return open();
  const auto refuse = [&](std::uint64_t bytes) -> Status {
    return {Code::kDeviceMemory,
            what + ": " + megabytes(bytes) + " of device memory are needed, and " +
                megabytes(memory->left()) + " of " + megabytes(memory->limit()) +
                " are left. Raise CUTOUT_DEVICE_MEMORY, or use a GPU with more memory."};
  };
  std::uint64_t jobs_before = 0;
  {
    const std::lock_guard lock(memory->mutex_);
    if (memory->limit_ == 0) memory->limit_ = before->total / 10 * 9;
    jobs_before = memory->jobs_;
  }
  if (expected > memory->left()) return refuse(expected);
  CUTOUT_RETURN_IF_ERROR(open());
  const std::optional<DeviceUse> after = memory->measure_();
  if (!after) return {};
  std::uint64_t bytes = 0;
  {
    // What jobs have reserved or released meanwhile is counted already.
    const std::lock_guard lock(memory->mutex_);
    const std::uint64_t now = after->used + jobs_before;
    bytes = now - std::min(now, before->used + memory->jobs_);
  }
  if (bytes > memory->left()) return refuse(bytes);
  const std::lock_guard lock(memory->mutex_);
  memory->sessions_ += bytes;
  reservation.memory_ = memory;
  reservation.bytes_ = bytes;
  return {};
}

}  // namespace cutout::ort
