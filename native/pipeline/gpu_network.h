#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/network.h"
#include "low_precision/plan.h"
#include "low_precision/program.h"
#include "pipeline/device.h"

namespace cutout {

struct GpuNetworkOptions {
  /// Written by src/compiler/lowPrecision/gpu.ts.
  std::string path;
  int width = 0;  // input size in pixels
  int height = 0;
  int slots = 1;          // concurrent runs
  int largest_batch = 1;  // images
  /// Called before sizes of batches are opened, with each power of two. Must not throw.
  std::function<void(int batch)> opening;
};

/// A convolutional network on a GPU by Cutout's own kernels (cuda/network/table.h): maps of
/// float16, sums in float32, one set of weights for all sizes of batches, each recorded as one
/// graph. It needs the driver and libcutout_cuda.so alone.
///
/// A batch has as many images as are asked for, with one wait at its end; runs of several threads
/// follow each other. A run is not ended early.
class GpuNetwork final : public Network {
 public:
  /// kModel for a file that cannot be used, kDeviceMemory where not even single images fit. The
  /// device outlives the network.
  static Status open(const GpuNetworkOptions& options, Device& device, const CancelToken& token,
                     std::unique_ptr<Network>& network);
  ~GpuNetwork() override;
  GpuNetwork(const GpuNetwork&) = delete;
  GpuNetwork& operator=(const GpuNetwork&) = delete;

  Status open_slot(int slot) override;
  void close_slot(int) noexcept override {}
  [[nodiscard]] bool takes(int width, int height) const override {
    return width == width_ && height == height_;
  }
  [[nodiscard]] TensorView input_tensor(int slot, int width, int height) override;
  [[nodiscard]] TensorView output_plane(int slot) override;
  Status run(int slot, int width, int height, const CancelToken& token, TensorView& plane) override;
  Status run_batch(std::size_t size, std::span<const int> slots, const CancelToken& token,
                   ThreadPool& pool) override;
  bool queue_behind(int slot, std::weak_ptr<const WorkOnDevice> work) override {
    slots_[static_cast<std::size_t>(slot)].behind = std::move(work);
    return true;
  }
  Status check(const CancelToken& token) override;

  [[nodiscard]] const std::vector<BatchTiming>& timings() const override { return timings_; }
  [[nodiscard]] double load_ms() const override { return load_ms_; }
  [[nodiscard]] double warm_up_ms() const override { return warm_up_ms_; }

 private:
  struct Slot {
    std::shared_ptr<void> input;
    std::shared_ptr<void> output;
    std::weak_ptr<const WorkOnDevice> behind;
  };
  /// Weights and bias of a convolution, on the device.
  struct Constants {
    const std::uint16_t* weights = nullptr;
    const float* bias = nullptr;
    int tile = 0;  // the fastest for the last power of two images
  };

  explicit GpuNetwork(Device& device) : device_(device) {}
  Status read(const std::string& path);
  Status upload_constants();
  Status open_batches(const GpuNetworkOptions& options, const CancelToken& token);
  Status record(int images);
  /// Finds the fastest tile of each convolution for so many images. What it writes is of no use.
  Status choose_tiles(int images);
  Status fastest_tile(const cuda::Convolution& convolution, int& fastest);
  [[nodiscard]] cuda::Convolution convolution(std::size_t at, int images) const;
  /// Queues every operation between the planes that go in and those that come out.
  void queue(DeviceCall& call, int images) const;
  Status run_images(std::span<const int> slots);
  [[nodiscard]] cuda::DeviceMap map(int value, int images) const;

  Device& device_;
  std::vector<std::byte> file_;  // until the constants are on the device
  low_precision::Program program_;
  low_precision::Plan plan_;
  int width_ = 0;
  int height_ = 0;
  int output_factor_ = 1;
  int output_value_ = 0;
  int output_width_ = 0;
  int output_height_ = 0;
  std::shared_ptr<void> constants_;
  std::vector<Constants> constants_of_;
  std::shared_ptr<void> maps_;  // of the largest batch
  std::vector<void*> graphs_;   // of 1, 2, 3 … images
  std::vector<Slot> slots_;
  std::mutex run_mutex_;  // held by a run
  std::vector<BatchTiming> timings_;
  double load_ms_ = 0;
  double warm_up_ms_ = 0;
};

}  // namespace cutout
