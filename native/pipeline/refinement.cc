#include "pipeline/refinement.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/large_memory.h"
#include "image/plane.h"
#include "matte/colour_sampling.h"
#include "matte/guided_upsample.h"
#include "matte/pixels.h"

namespace cutout {

namespace {

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

/// What refinement takes from the guide's colours.
ColourSampling samples_of(const Guide& guide, std::span<const float> alpha, TrainedOn trained_on,
                          ThreadPool& pool) {
  return trained_on == TrainedOn::kMasks ? sample_colours(guide, alpha, pool)
                                         : without_samples(guide, alpha, pool);
}

SolvedEdges solve(const Guide& guide, std::span<const float> alpha, TrainedOn trained_on,
                  ThreadPool& pool) {
  return solve_edges(guide, alpha, samples_of(guide, alpha, trained_on, pool), pool);
}

}  // namespace

bool input_is_guide(const NetworkInput& input, int width, int height, int image_width,
                    int image_height) {
  return width == input.width && height == input.height && width <= image_width &&
         height <= image_height;
}

std::unique_ptr<SolvedMatte> solve_matte(ImageView whole, const Box& part,
                                         const Prediction& prediction, ThreadPool& pool) {
  const TensorView& p = prediction.probability;
  const ConstImageView image = part_of(whole, part);
  Guide guide;
  guide.width = std::min(p.width, image.width);
  guide.height = std::min(p.height, image.height);
  const auto set_planes = [&guide](const float* planes) {
    for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes + c * guide.size();
  };
  const NetworkInput& spec = prediction.spec;
  if (input_is_guide(spec, p.width, p.height, image.width, image.height)) {
    set_planes(host_floats(prediction.input.value()).data());
    for (std::size_t c = 0; c < 3; ++c) {
      guide.scale[c] = spec.std[c] / 255.0F;
      guide.offset[c] = spec.mean[c] / 255.0F;
    }
    return std::make_unique<HostMatte>(
        whole, part, nullptr, solve(guide, host_floats(p), prediction.trained_on, pool), pool);
  }
  auto planes = make_large_array<float>(3 * guide.size());
  fill_network_input(image, {guide.width, guide.height, {0, 0, 0}, {255, 255, 255}}, planes.get(),
                     pool);
  set_planes(planes.get());
  const auto resized = make_large_array<float>(guide.size());
  const std::span<float> alpha{resized.get(), guide.size()};
  resize_plane(host_floats(p), p.width, p.height, guide.width, guide.height, alpha, pool);
  SolvedEdges edges = solve(guide, alpha, prediction.trained_on, pool);
  return std::make_unique<HostMatte>(whole, part, std::move(planes), std::move(edges), pool);
}

}  // namespace cutout
