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

DeviceMemoryBudget::Booking& DeviceMemoryBudget::Booking::operator=(Booking&& other) noexcept {
  if (this == &other) return *this;
  release();
  memory_ = std::move(other.memory_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void DeviceMemoryBudget::Booking::release() {
  if (memory_ == nullptr) return;
  const std::lock_guard lock(memory_->mutex_);
  memory_->booked_ -= bytes_;
  memory_.reset();
}

std::uint64_t DeviceMemoryBudget::booked() const {
  const std::lock_guard lock(mutex_);
  return booked_ + taken_;
}

std::uint64_t DeviceMemoryBudget::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

bool DeviceMemoryBudget::take(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  // Until a session was measured, 0 is a limit that is not known.
  if (limit_ > 0 && (booked_ + taken_ > limit_ || bytes > limit_ - booked_ - taken_)) return false;
  taken_ += bytes;
  return true;
}

void DeviceMemoryBudget::give_back(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_ -= bytes;
}

std::uint64_t DeviceMemoryBudget::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::uint64_t DeviceMemoryBudget::left() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t all = booked_ + taken_;
  return limit_ > all ? limit_ - all : 0;
}

Status DeviceMemoryBudget::book(const std::shared_ptr<DeviceMemoryBudget>& memory,
                                const std::string& what, std::uint64_t expected,
                                const std::function<Status()>& open, Booking& booking) {
  if (memory == nullptr) return open();
  return memory->book(memory, what, expected, open, booking, memory->measure_());
}

Status DeviceMemoryBudget::book(const std::shared_ptr<DeviceMemoryBudget>& self,
                                const std::string& what, std::uint64_t expected,
                                const std::function<Status()>& open, Booking& booking,
                                const std::optional<DeviceUse>& before) {
  if (!before) return open();
  const auto refuse = [&](std::uint64_t bytes) -> Status {
    return {Code::kDeviceMemory,
            what + ": " + megabytes(bytes) + " of device memory are needed, and " +
                megabytes(left()) + " of " + megabytes(limit()) +
                " are left. Raise CUTOUT_DEVICE_MEMORY, or use a GPU with more memory."};
  };
  {
    const std::lock_guard lock(mutex_);
    if (limit_ == 0) limit_ = before->total / 10 * 9;
  }
  if (expected > left()) return refuse(expected);
  const std::uint64_t taken_before = taken();
  CUTOUT_RETURN_IF_ERROR(open());
  const std::optional<DeviceUse> after = measure_();
  if (!after) return {};
  // What jobs have taken or given back meanwhile is counted already.
  const std::uint64_t now = after->used + taken_before;
  const std::uint64_t bytes = now - std::min(now, before->used + taken());
  if (bytes > left()) return refuse(bytes);
  const std::lock_guard lock(mutex_);
  booked_ += bytes;
  booking.memory_ = self;
  booking.bytes_ = bytes;
  return {};
}

}  // namespace cutout::ort
