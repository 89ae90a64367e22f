#include "pipeline/cpu_backend.h"

#include <algorithm>

#include "core/large_memory.h"
#include "image/plane.h"
#include "image/resample.h"
#include "matte/component_filter.h"
#include "matte/confident.h"
#include "matte/fusion.h"
#include "pipeline/probability.h"
#include "pipeline/refinement.h"

namespace cutout {

Tensor CpuBackend::allocate(int planes, int height, int width) {
  Tensor tensor;
  tensor.view = {nullptr, planes, height, width};
  auto values = make_large_array<float>(tensor.view.size());
  tensor.memory = {values.release(), [](void* memory) noexcept { LargeArrayDeleter{}(memory); }};
  tensor.view.data = tensor.memory.get();
  return tensor;
}

Status CpuBackend::upload(std::span<const float> values, const TensorView& tensor) {
  std::ranges::copy(values, host_floats(tensor).begin());
  return {};
}

Status CpuBackend::download(const TensorView& tensor, std::span<float> values) {
  std::ranges::copy(host_floats(tensor), values.begin());
  return {};
}

Status CpuBackend::fill_input(ConstImageView image, const NetworkInput& spec,
                              const TensorView& input) {
  fill_network_input(image, spec, host_floats(input).data(), pool_);
  return {};
}

Status CpuBackend::to_probability(const TensorView& values, NetworkOutput output) {
  return cutout::to_probability(host_floats(values), output, pool_);
}

Status CpuBackend::is_confident(const TensorView& probability, const Box& area, bool& confident) {
  confident = cutout::is_confident(host_floats(probability), probability.width, area, pool_);
  return {};
}

Status CpuBackend::fuse(const TensorView& first, const TensorView& second) {
  const auto fuse_with = [&](std::span<const float> other) {
    fuse_outputs(host_floats(first), other, first.width, first.height, pool_);
  };
  if (second.width == first.width && second.height == first.height) {
    fuse_with(host_floats(second));
    return {};
  }
  const auto memory = make_large_array<float>(first.size());
  const std::span<float> resized{memory.get(), first.size()};
  resize_plane(host_floats(second), second.width, second.height, first.width, first.height, resized,
               pool_);
  fuse_with(resized);
  return {};
}

Status CpuBackend::find_subject(const TensorView& probability, const Box& area,
                                const std::optional<PlacedMask>& mask) {
  const std::span<float> p = host_floats(probability);
  if (!mask) {
    filter_components(p, probability.width, area, pool_);
    return {};
  }
  const NetworkMask at_network = resize_mask(mask->mask, mask->view, mask->width, mask->height,
                                             probability.width, probability.height, pool_);
  constrain(p, at_network, pool_);
  const auto constrained = make_large_array<float>(p.size());
  std::ranges::copy(p, constrained.get());
  filter_components(p, probability.width, area, pool_);
  restore_marked(p, {constrained.get(), p.size()}, at_network, pool_);
  return {};
}

Status CpuBackend::reduce(ImageView image, int width, int height) {
  return reduce_in_place(image, width, height, pool_);
}

Status CpuBackend::solve(ConstImageView image, const Prediction& prediction, Refinement refinement,
                         std::unique_ptr<SolvedMatte>& solved) {
  solved = solve_matte(image, prediction, refinement, pool_);
  return {};
}

}  // namespace cutout
