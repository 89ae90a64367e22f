#include "pipeline/device.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "ort/failure.h"

namespace cutout {

namespace {

constexpr std::size_t kSmallest = 4096;    // bytes of a block
constexpr std::size_t kGrain = 256 << 10;  // bytes that a thread copies at a time
constexpr int kOutOfMemory = 2;            // cudaErrorMemoryAllocation

/// The size of a block for so many bytes: four sizes between two powers of two.
std::size_t block_size(std::size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

/// Calls copy(row, bytes of the range) for the parts of rows that bytes begin .. end are in.
template <typename Byte, typename Copy>
void for_parts(const BasicHostRows<Byte>& rows, std::size_t begin, std::size_t end,
               const Copy& copy) {
  for (std::size_t at = begin; at < end;) {
    const std::size_t in_row = at % rows.bytes;
    const std::size_t n = std::min(rows.bytes - in_row, end - at);
    copy(rows.data + static_cast<std::ptrdiff_t>(at / rows.bytes) * rows.stride + in_row,
         at - begin, n);
    at += n;
  }
}

}  // namespace

Device::~Device() {
  for (const Stream& stream : idle_streams_) close_stream(stream);
  release_kept();
}

Status Device::failure(int error) const {
  return ort::gpu_failure("The work on the GPU failed",
                          "CUDA failure " + std::to_string(error) + ": " + table_.error_text(error),
                          Code::kInternal);
}

Status Device::allocate(std::size_t bytes, std::shared_ptr<void>& memory) {
  const std::size_t size = block_size(bytes);
  void* block = take_kept(size);
  if (block == nullptr) {
    Status status = take_new(size, &block);
    if (status.code() == Code::kDeviceMemory) {
      release_kept();
      status = take_new(size, &block);
    }
    CUTOUT_RETURN_IF_ERROR(status);
    const std::lock_guard lock(mutex_);
    ++stats_.allocations;
    stats_.used_bytes += size;
  }
  memory = std::shared_ptr<void>(block, [this, size](void* used) { give_back(used, size); });
  return {};
}

Status Device::take_new(std::size_t bytes, void** block) {
  if (budget_ != nullptr && !budget_->reserve(bytes)) {
    return {Code::kDeviceMemory,
            std::to_string(bytes) + " bytes of device memory are needed, and " +
                std::to_string(budget_->left()) + " of " + std::to_string(budget_->limit()) +
                " are left. Raise CUTOUT_DEVICE_MEMORY, or lower CUTOUT_WORKERS."};
  }
  int error = table_.use_device(number_);
  if (error == 0) error = table_.allocate(bytes, block);
  if (error == 0) return {};
  if (budget_ != nullptr) budget_->release(bytes);
  return failure(error);
}

/// The device's own errors do not matter here: what cannot be released is lost with the device.
void Device::release(void* block, std::size_t bytes) noexcept {
  (void)table_.use_device(number_);
  (void)table_.release(block);
  if (budget_ != nullptr) budget_->release(bytes);
}

void Device::destroy_graph(void* graph) noexcept {
  (void)table_.use_device(number_);
  (void)table_.network.destroy_graph(graph);
}

void* Device::take_kept(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(bytes);
  if (found == kept_.end() || found->second.empty()) return nullptr;
  void* const block = found->second.back();
  found->second.pop_back();
  stats_.kept_bytes -= bytes;
  stats_.used_bytes += bytes;
  return block;
}

void Device::give_back(void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  stats_.used_bytes -= bytes;
  try {
    kept_[bytes].push_back(block);
    stats_.kept_bytes += bytes;
  } catch (const std::bad_alloc&) {
    release(block, bytes);
  }
}

void Device::release_kept() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [bytes, blocks] : kept_) {
    for (void* const block : blocks) release(block, bytes);
    blocks.clear();
  }
  stats_.kept_bytes = 0;
}

DeviceStats Device::stats() const {
  const std::lock_guard lock(mutex_);
  DeviceStats stats = stats_;
  stats.streams = open_streams_;
  return stats;
}

Status Device::open_stream(Stream& stream) {
  if (const int error = table_.create_stream(&stream.handle); error != 0) return failure(error);
  const std::size_t bytes = 2 * staging_ + staging_ / 4;
  void* staging = nullptr;
  if (const int error = table_.allocate_pinned(bytes, &staging); error != 0) {
    (void)table_.destroy_stream(stream.handle);
    if (error != kOutOfMemory) return failure(error);
    return {Code::kOutOfMemory,
            "There is no page-locked memory for copies to the GPU: " + std::to_string(bytes) +
                " bytes. Raise the limit of locked memory."};
  }
  stream.staging = static_cast<std::byte*>(staging);
  return {};
}

void Device::close_stream(const Stream& stream) noexcept {
  (void)table_.use_device(number_);
  (void)table_.release_pinned(stream.staging);
  (void)table_.destroy_stream(stream.handle);
}

Status Device::acquire_stream(Stream& stream) {
  if (const int error = table_.use_device(number_); error != 0) return failure(error);
  {
    const std::lock_guard lock(mutex_);
    if (!idle_streams_.empty()) {
      stream = idle_streams_.back();
      idle_streams_.pop_back();
      return {};
    }
    idle_streams_.reserve(open_streams_ + 1);  // giving it back does not allocate
    ++open_streams_;
  }
  Status status = open_stream(stream);
  if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    --open_streams_;
  }
  return status;
}

void Device::release_stream(const Stream& stream) noexcept {
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

DeviceCall::DeviceCall(Device& device) : device_(device), status_(device.acquire_stream(stream_)) {
  has_stream_ = status_.ok();
}

DeviceCall::~DeviceCall() {
  // Memory is used again only when no work can touch it. What has failed is known already.
  if (queued_) (void)device_.table_.synchronize(stream_.handle);
  if (has_stream_) device_.release_stream(stream_);
}

void DeviceCall::note(int error) {
  if (error != 0 && status_.ok()) status_ = device_.failure(error);
}

const void* DeviceCall::add_parameter(const void* value, std::size_t bytes, std::size_t alignment) {
  const std::size_t at = (parameters_added_ + alignment - 1) / alignment * alignment;
  if (at + bytes > device_.staging_ / 4) {
    auto* const memory = scratch<std::byte>(bytes);
    run<&cuda::Table::copy_to_device>(memory, value, bytes);
    return memory;
  }
  if (parameters_ == nullptr) parameters_ = scratch<std::byte>(device_.staging_ / 4);
  if (!status_.ok()) return nullptr;
  std::memcpy(on_host() + at, value, bytes);
  parameters_added_ = at + bytes;
  return parameters_ + at;
}

void DeviceCall::copy_parameters() {
  if (!status_.ok() || parameters_copied_ == parameters_added_) return;
  const std::size_t from = parameters_copied_;
  parameters_copied_ = parameters_added_;
  run<&cuda::Table::copy_to_device>(parameters_ + from, on_host() + from,
                                    parameters_copied_ - from);
}

Status DeviceCall::finish() {
  if (queued_) {
    queued_ = false;
    note(device_.table_.synchronize(stream_.handle));
  }
  return status_;
}

void DeviceCall::upload(const ConstHostRows& rows, void* memory, ThreadPool& pool) {
  const std::size_t total = rows.count * rows.bytes;
  std::size_t half = 0;
  for (std::size_t begin = 0; begin < total && status_.ok(); begin += device_.staging_) {
    const std::size_t n = std::min(device_.staging_, total - begin);
    std::byte* const staged = stream_.staging + half * device_.staging_;
    pool.parallel_for(n, kGrain, [&](std::size_t from, std::size_t to) {
      for_parts(rows, begin + from, begin + to,
                [&](const std::byte* row, std::size_t at, std::size_t bytes) {
                  std::memcpy(staged + from + at, row, bytes);
                });
    });
    // The copy of the other half, which went on meanwhile, ends before that is written again.
    status_ = finish();
    run<&cuda::Table::copy_to_device>(static_cast<std::byte*>(memory) + begin, staged, n);
    half = 1 - half;
  }
  status_ = finish();
}

void DeviceCall::download(const void* memory, const HostRows& rows, ThreadPool& pool, bool* begun) {
  const std::size_t total = rows.count * rows.bytes;
  const auto staged = [&](std::size_t begin) {
    return stream_.staging + begin / device_.staging_ % 2 * device_.staging_;
  };
  const auto unpack = [&](std::size_t begin, std::size_t n) {
    if (begun != nullptr) *begun = true;
    pool.parallel_for(n, kGrain, [&](std::size_t from, std::size_t to) {
      for_parts(rows, begin + from, begin + to,
                [&](std::byte* row, std::size_t at, std::size_t bytes) {
                  std::memcpy(row, staged(begin) + from + at, bytes);
                });
    });
  };
  for (std::size_t begin = 0; begin < total && status_.ok(); begin += device_.staging_) {
    const std::size_t n = std::min(device_.staging_, total - begin);
    run<&cuda::Table::copy_to_host>(staged(begin), static_cast<const std::byte*>(memory) + begin,
                                    n);
    if (begin > 0 && status_.ok()) unpack(begin - device_.staging_, device_.staging_);
    status_ = finish();
  }
  if (!status_.ok() || total == 0) return;
  const std::size_t last = (total - 1) / device_.staging_ * device_.staging_;
  unpack(last, total - last);
}

}  // namespace cutout
