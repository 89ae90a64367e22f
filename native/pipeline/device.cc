#include "pipeline/device.h"

#include <algorithm>
#include <bit>
#include <string>

#include "ort/failure.h"

namespace cutout {

namespace {

constexpr std::size_t kSmallest = 4096;  // bytes of a block
constexpr int kOutOfMemory = 2;          // cudaErrorMemoryAllocation

/// The size of a block for so many bytes: four sizes between two powers of two.
std::size_t block_size(std::size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

Device::~Device() {
  (void)table_.use_device(number_);
  for (void* const stream : idle_streams_) (void)table_.destroy_stream(stream);
  release_kept();
}

Status Device::failure(int error) const {
  return ort::gpu_failure("The work on the GPU failed",
                          "CUDA failure " + std::to_string(error) + ": " + table_.error_text(error),
                          Code::kInternal);
}

Status Device::allocate(Kind kind, std::size_t bytes, std::shared_ptr<void>& memory) {
  const std::size_t size = block_size(bytes);
  void* block = take_kept(kind, size);
  if (block == nullptr) {
    Status status = take_new(kind, size, &block);
    if (status.code() == Code::kDeviceMemory || status.code() == Code::kOutOfMemory) {
      release_kept();
      status = take_new(kind, size, &block);
    }
    CUTOUT_RETURN_IF_ERROR(status);
    const std::lock_guard lock(mutex_);
    ++stats_.allocations;
    if (kind == kOnDevice) stats_.used_bytes += size;
  }
  memory =
      std::shared_ptr<void>(block, [this, kind, size](void* used) { give_back(kind, used, size); });
  return {};
}

Status Device::take_new(Kind kind, std::size_t bytes, void** block) {
  if (const int error = table_.use_device(number_); error != 0) return failure(error);
  if (kind == kPageLocked) {
    const int error = table_.allocate_pinned(bytes, block);
    if (error != kOutOfMemory) return error == 0 ? Status{} : failure(error);
    return {Code::kOutOfMemory,
            "There is no page-locked memory for copies to the GPU: " + std::to_string(bytes) +
                " bytes. Raise the limit of locked memory."};
  }
  if (budget_ != nullptr && !budget_->reserve(bytes)) {
    return {Code::kDeviceMemory,
            std::to_string(bytes) + " bytes of device memory are needed, and " +
                std::to_string(budget_->left()) + " of " + std::to_string(budget_->limit()) +
                " are left. Raise CUTOUT_DEVICE_MEMORY, or lower CUTOUT_WORKERS."};
  }
  const int error = table_.allocate(bytes, block);
  if (error == 0) return {};
  if (budget_ != nullptr) budget_->release(bytes);
  return failure(error);
}

/// The device's own errors do not matter here: what cannot be released is lost with the device.
void Device::release(Kind kind, void* block, std::size_t bytes) noexcept {
  (void)table_.use_device(number_);
  (void)(kind == kOnDevice ? table_.release : table_.release_pinned)(block);
  if (kind == kOnDevice && budget_ != nullptr) budget_->release(bytes);
}

void Device::destroy_graph(void* graph) noexcept {
  (void)table_.use_device(number_);
  (void)table_.network.destroy_graph(graph);
}

void* Device::take_kept(Kind kind, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_[kind].find(bytes);
  if (found == kept_[kind].end() || found->second.empty()) return nullptr;
  void* const block = found->second.back();
  found->second.pop_back();
  if (kind == kPageLocked) return block;
  stats_.kept_bytes -= bytes;
  stats_.used_bytes += bytes;
  return block;
}

void Device::give_back(Kind kind, void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t counted = kind == kOnDevice ? bytes : 0;
  stats_.used_bytes -= counted;
  try {
    kept_[kind][bytes].push_back(block);
    stats_.kept_bytes += counted;
  } catch (const std::bad_alloc&) {
    release(kind, block, bytes);
  }
}

void Device::release_kept() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Kind kind : {kOnDevice, kPageLocked}) {
    for (auto& [bytes, blocks] : kept_[kind]) {
      for (void* const block : blocks) release(kind, block, bytes);
      blocks.clear();
    }
  }
  stats_.kept_bytes = 0;
}

DeviceStats Device::stats() const {
  const std::lock_guard lock(mutex_);
  DeviceStats stats = stats_;
  stats.streams = open_streams_;
  return stats;
}

Status Device::acquire_stream(void*& stream) {
  if (const int error = table_.use_device(number_); error != 0) return failure(error);
  const std::lock_guard lock(mutex_);
  if (!idle_streams_.empty()) {
    stream = idle_streams_.back();
    idle_streams_.pop_back();
    return {};
  }
  idle_streams_.reserve(open_streams_ + 1);  // giving it back does not allocate
  if (const int error = table_.create_stream(&stream); error != 0) return failure(error);
  ++open_streams_;
  return {};
}

void Device::release_stream(void* stream) noexcept {
  const std::lock_guard lock(mutex_);
  idle_streams_.push_back(stream);
}

Status Device::clear(void* memory, std::size_t bytes) {
  DeviceCall call(*this);
  call.clear(memory, bytes);
  return call.finish();
}

Status Device::copy(std::span<const DeviceCopy> copies) {
  DeviceCall call(*this);
  for (const DeviceCopy& each : copies)
    call.run<&cuda::Table::copy_on_device>(each.to, each.from, each.bytes);
  return call.finish();
}

DeviceCall::DeviceCall(Device& device) : device_(device), status_(device.acquire_stream(stream_)) {}

DeviceCall::~DeviceCall() {
  // Memory is used again only when no work can touch it. What has failed is known already.
  if (queued_) (void)device_.table_.synchronize(stream_);
  if (stream_ != nullptr) device_.release_stream(stream_);
}

void DeviceCall::note(int error) {
  if (error != 0 && status_.ok()) status_ = device_.failure(error);
}

void* DeviceCall::take_scratch(std::size_t bytes) {
  const auto used = scratch_.begin() + static_cast<std::ptrdiff_t>(scratch_used_);
  const auto fits = [bytes](const Scratch& block) { return block.bytes >= bytes; };
  const auto found = std::find_if(used, scratch_.end(), fits);
  if (found != scratch_.end()) {
    std::iter_swap(used, found);
  } else {
    Scratch made{nullptr, bytes};
    if (status_.ok()) status_ = device_.allocate(bytes, made.memory);
    if (!status_.ok()) return nullptr;
    scratch_.insert(used, std::move(made));
  }
  return scratch_[scratch_used_++].memory.get();
}

Mirrored DeviceCall::mirrored(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  mirror_used_ = (mirror_used_ + kAlignment - 1) / kAlignment * kAlignment;
  if (mirror_used_ + bytes > mirror_bytes_) {
    copy_mirrored();
    mirror_bytes_ = bytes + device_.for_constants_;
    mirror_used_ = mirror_copied_ = 0;
    std::array<std::shared_ptr<void>, 2> blocks;
    for (const Device::Kind kind : {Device::kOnDevice, Device::kPageLocked}) {
      if (status_.ok()) status_ = device_.allocate(kind, mirror_bytes_, blocks[kind]);
      held_.push_back(blocks[kind]);
    }
    mirror_ = {static_cast<std::byte*>(blocks[Device::kPageLocked].get()),
               static_cast<std::byte*>(blocks[Device::kOnDevice].get())};
  }
  if (!status_.ok()) return {};
  const std::size_t at = mirror_used_;
  mirror_used_ += bytes;
  return {mirror_.host + at, mirror_.device + at};
}

void DeviceCall::copy_mirrored() {
  if (!status_.ok() || mirror_copied_ == mirror_used_) return;
  const std::size_t from = mirror_copied_;
  mirror_copied_ = mirror_used_;
  run<&cuda::Table::copy_to_device>(mirror_.device + from, mirror_.host + from,
                                    mirror_copied_ - from);
}

Status DeviceCall::finish() {
  if (queued_) {
    queued_ = false;
    note(device_.table_.synchronize(stream_));
  }
  scratch_.clear();
  scratch_used_ = 0;
  return status_;
}

}  // namespace cutout
