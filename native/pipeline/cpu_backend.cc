#include "pipeline/cpu_backend.h"

#include <algorithm>

#include "core/large_memory.h"
#include "image/resample.h"
#include "matte/component_filter.h"
#include "matte/uncertainty.h"
#include "pipeline/probability.h"
#include "pipeline/refinement.h"

namespace cutout {

namespace {

/// The caller's pixels.
class HostImage final : public JobImage {
 public:
  explicit HostImage(ImageView pixels) : view(pixels) {}

  [[nodiscard]] int width() const override { return view.width; }
  [[nodiscard]] int height() const override { return view.height; }
  [[nodiscard]] bool changed() const override { return true; }  // at any time from now on

  ImageView view;
};

}  // namespace

Status CpuBackend::allocate(int planes, int height, int width, Tensor& tensor) {
  tensor.view = {nullptr, planes, height, width};
  tensor.memory = std::shared_ptr<void>(make_large_array<float>(tensor.view.size()).release(),
                                        [](void* memory) noexcept { LargeArrayDeleter{}(memory); });
  tensor.view.data = tensor.memory.get();
  return {};
}

Status CpuBackend::open_image(ImageView pixels, std::unique_ptr<JobImage>& image) {
  image = std::make_unique<HostImage>(pixels);
  return {};
}

Status CpuBackend::upload(std::span<const float> values, const TensorView& tensor) {
  std::ranges::copy(values, host_floats(tensor).begin());
  return {};
}

Status CpuBackend::download(const TensorView& tensor, std::span<float> values) {
  std::ranges::copy(host_floats(tensor), values.begin());
  return {};
}

Status CpuBackend::fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                              const TensorView& input) {
  fill_network_input(part_of(static_cast<const HostImage&>(image).view, part), spec,
                     host_floats(input).data(), pool_);
  return {};
}

Status CpuBackend::to_probability(const TensorView& values, NetworkOutput output) {
  return cutout::to_probability(host_floats(values), output, pool_);
}

Status CpuBackend::uncertainty(const TensorView& probability, const Box& area, double& value) {
  value = cutout::uncertainty(host_floats(probability), probability.width, area, pool_);
  return {};
}

Status CpuBackend::filter_components(const TensorView& probability, const Box& area,
                                     const std::optional<PlacedMask>& mask) {
  const std::span<float> p = host_floats(probability);
  if (!mask) {
    cutout::filter_components(p, probability.width, area, pool_);
    return {};
  }
  const NetworkMask at_network = resize_mask(mask->mask, mask->view, mask->width, mask->height,
                                             probability.width, probability.height, pool_);
  constrain(p, at_network, pool_);
  const auto constrained = make_large_array<float>(p.size());
  std::ranges::copy(p, constrained.get());
  cutout::filter_components(p, probability.width, area, pool_);
  restore_marked(p, {constrained.get(), p.size()}, at_network, pool_);
  return {};
}

Status CpuBackend::reduce(JobImage& image, int width, int height) {
  ImageView& view = static_cast<HostImage&>(image).view;
  CUTOUT_RETURN_IF_ERROR(reduce_in_place(view, width, height, pool_));
  view = {view.data, width, height, static_cast<std::ptrdiff_t>(width) * 4};
  return {};
}

Status CpuBackend::solve(JobImage& image, const Box& part, const Prediction& prediction,
                         std::unique_ptr<SolvedMatte>& solved) {
  solved = solve_matte(static_cast<HostImage&>(image).view, part, prediction, pool_);
  return {};
}

}  // namespace cutout
