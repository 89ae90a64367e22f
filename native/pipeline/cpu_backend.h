#pragma once

#include "core/thread_pool.h"
#include "pipeline/backend.h"

namespace cutout {

/// The kernels of native/image and native/matte, on the caller's thread and idle threads of a pool.
class CpuBackend final : public Backend {
 public:
  /// The pool is used until the last call has returned.
  explicit CpuBackend(ThreadPool& pool) : pool_(pool) {}

  [[nodiscard]] Placement placement() const override { return Placement::kHost; }
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
  ThreadPool& pool_;
};

}  // namespace cutout
