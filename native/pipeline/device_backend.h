#pragma once

#include "core/thread_pool.h"
#include "pipeline/backend.h"
#include "pipeline/device.h"

namespace cutout {

/// The kernels of native/cuda on a device. The image is copied there once and comes back once, a
/// mask goes there once; what lies between the stages stays there. All steps run on the device.
/// Each call has a stream of its own and waits for it.
///
/// Its results are those of CpuBackend, bit for bit, but for the sigmoid on a GPU (cuda/table.h).
class DeviceBackend final : public Backend {
 public:
  /// Both are used until the last call has returned and the last tensor, image and matte is gone.
  DeviceBackend(Device& device, ThreadPool& pool) : device_(device), pool_(pool) {}

  [[nodiscard]] Placement placement() const override { return Placement::kDevice; }
  Status allocate(int planes, int height, int width, Tensor& tensor) override;
  Status upload(std::span<const float> values, const TensorView& tensor) override;
  Status download(const TensorView& tensor, std::span<float> values) override;
  Status open_image(ImageView pixels, std::unique_ptr<JobImage>& image) override;
  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override;
  Status to_probability(const TensorView& values, NetworkOutput output) override;
  Status uncertainty(const TensorView& probability, const Box& area, double& value) override;
  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override;
  Status reduce(JobImage& image, int width, int height) override;
  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override;

 private:
  Device& device_;
  ThreadPool& pool_;
};

}  // namespace cutout
