#include "pipeline/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "core/large_memory.h"
#include "image/plane.h"
#include "image/resample.h"
#include "matte/colour_sampling.h"
#include "matte/component_filter.h"
#include "matte/math/probability.h"
#include "matte/pixels.h"
#include "matte/refine.h"
#include "matte/uncertainty.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 1 << 16;  // values in a range

/// Edges at the guide's size of a part of an image, with the guide's planes where they are not the
/// network's input.
class HostMatte final : public SolvedMatte {
 public:
  HostMatte(ImageView image, const Box& part, LargeArray<float> planes, SolvedEdges edges,
            ThreadPool& pool)
      : pool_(pool),
        image_(image),
        part_(part),
        planes_(std::move(planes)),
        edges_(std::move(edges)) {}

  [[nodiscard]] TensorView alpha() const override {
    const Guide& guide = edges_.guide;
    return host_tensor({edges_.matte.alpha.get(), guide.size()}, 1, guide.height, guide.width);
  }

  Status write(const Box& roi, HiddenColour hidden, MatteSummary& summary) const override {
    const Box whole{0, 0, image_.width, image_.height};
    summary = write_edges(part_of(image_, part_), edges_, roi, hidden, pool_);
    if (part_ == whole) return {};
    clear_around(image_, whole, part_, hidden);
    summary.opaque = false;
    if (!summary.box.empty()) {
      summary.box.left += part_.left;
      summary.box.top += part_.top;
    }
    return {};
  }

 private:
  ThreadPool& pool_;
  ImageView image_;
  Box part_;
  LargeArray<float> planes_;
  SolvedEdges edges_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(ThreadPool& pool) : pool_(pool) {}

  [[nodiscard]] Placement placement() const override { return Placement::kHost; }
  Status allocate(int planes, int height, int width, Tensor& tensor) override {
    tensor.view = {nullptr, planes, height, width};
    tensor.memory =
        std::shared_ptr<void>(make_large_array<float>(tensor.view.size()).release(),
                              [](void* memory) noexcept { LargeArrayDeleter{}(memory); });
    tensor.view.data = tensor.memory.get();
    return {};
  }
  Status upload(std::span<const float> values, const TensorView& tensor) override {
    std::ranges::copy(values, host_floats(tensor).begin());
    return {};
  }
  Status download(const TensorView& tensor, std::span<float> values) override {
    std::ranges::copy(host_floats(tensor), values.begin());
    return {};
  }
  Status open_image(ImageView pixels, std::unique_ptr<JobImage>& image) override {
    image = std::make_unique<JobImage>(pixels);
    return {};
  }
  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override {
    fill_network_input(part_of(image.pixels, part), spec, host_floats(input).data(), pool_);
    return {};
  }
  Status to_probability(const TensorView& values, NetworkOutput output, const Box& area,
                        Uncertainty& uncertainty) override {
    const bool logit = output == NetworkOutput::kLogit;
    std::atomic<bool> all_finite{true};
    pool_.parallel_for(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      bool good = true;
      for (float& value : host_floats(values).subspan(begin, end - begin)) {
        good &= finite(value);
        value = probability(value, logit);
      }
      if (!good) all_finite = false;
    });
    if (!all_finite) return not_finite_output();
    uncertainty = cutout::uncertainty(host_floats(values), values.width, area, pool_);
    return {};
  }
  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override {
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
  Status reduce(JobImage& image, int width, int height) override {
    reduce_in_place(image.pixels, width, height, pool_);
    image.pixels = {image.pixels.data, width, height, static_cast<std::ptrdiff_t>(width) * 4};
    return {};
  }
  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    solved = solve_matte(image.pixels, part, prediction, pool_);
    return {};
  }

 private:
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool) {
  return std::make_unique<CpuBackend>(pool);
}

std::unique_ptr<SolvedMatte> solve_matte(ImageView whole, const Box& part,
                                         const Prediction& prediction, ThreadPool& pool) {
  const TensorView& p = prediction.probability;
  const ConstImageView image = part_of(whole, part);
  Guide guide = guide_of(prediction, part);
  LargeArray<float> planes;
  LargeArray<float> resized;
  std::span<const float> alpha = host_floats(p);
  const float* values = nullptr;
  if (input_is_guide(prediction.spec, p.width, p.height, part)) {
    values = host_floats(prediction.input.value()).data();
  } else {
    planes = make_large_array<float>(3 * guide.size());
    values = planes.get();
    fill_network_input(image, {guide.width, guide.height, {0, 0, 0}, {255, 255, 255}}, planes.get(),
                       pool);
    resized = make_large_array<float>(guide.size());
    const std::span<float> at_size{resized.get(), guide.size()};
    resize_plane(alpha, p.width, p.height, guide.width, guide.height, at_size, pool);
    alpha = at_size;
  }
  for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = values + c * guide.size();
  const ColourSampling samples = prediction.trained_on == TrainedOn::kMasks
                                     ? sample_colours(guide, alpha, pool)
                                     : without_samples(guide, alpha, pool);
  return std::make_unique<HostMatte>(whole, part, std::move(planes),
                                     solve_edges(guide, alpha, samples, pool), pool);
}

}  // namespace cutout
