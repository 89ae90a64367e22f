#include "pipeline/refinement.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/large_memory.h"
#include "image/plane.h"
#include "matte/apply.h"
#include "matte/colour_sampling.h"
#include "matte/guided_upsample.h"

namespace cutout {

namespace {

/// A network's output that is enlarged as it is.
class Enlarged final : public SolvedMatte {
 public:
  Enlarged(const TensorView& alpha, ThreadPool& pool) : alpha_(alpha), pool_(pool) {}

  [[nodiscard]] TensorView alpha() const override { return alpha_; }

  Status write(ImageView image, const Box& roi, HiddenColour hidden,
               MatteSummary& summary) const override {
    summary =
        apply_matte(image, host_floats(alpha_), alpha_.width, alpha_.height, roi, hidden, pool_);
    return {};
  }

 private:
  TensorView alpha_;
  ThreadPool& pool_;
};

/// Edges at the guide's size, with the guide's planes where they are not the network's input.
class Refined final : public SolvedMatte {
 public:
  Refined(LargeArray<float> planes, SolvedEdges edges, ThreadPool& pool)
      : planes_(std::move(planes)), edges_(std::move(edges)), pool_(pool) {}

  [[nodiscard]] TensorView alpha() const override {
    const Guide& guide = edges_.guide;
    return host_tensor({edges_.matte.alpha.get(), guide.size()}, 1, guide.height, guide.width);
  }

  Status write(ImageView image, const Box& roi, HiddenColour hidden,
               MatteSummary& summary) const override {
    summary = write_edges(image, edges_, roi, hidden, pool_);
    return {};
  }

 private:
  LargeArray<float> planes_;
  SolvedEdges edges_;
  ThreadPool& pool_;
};

SolvedEdges solve(ConstImageView image, const Guide& guide, std::span<const float> alpha,
                  TrainedOn trained_on, ThreadPool& pool) {
  if (trained_on == TrainedOn::kMattes) {
    return solve_edges(guide, alpha, image.width, image.height, pool);
  }
  const ColourSampling sampling = sample_colours(guide, alpha, pool);
  return solve_edges(with_samples(guide, sampling), {sampling.alpha.get(), guide.size()},
                     image.width, image.height, pool);
}

}  // namespace

bool input_is_guide(const NetworkInput& input, int width, int height, int image_width,
                    int image_height) {
  return width == input.width && height == input.height && width <= image_width &&
         height <= image_height;
}

std::unique_ptr<SolvedMatte> solve_matte(ConstImageView image, const Prediction& prediction,
                                         Refinement refinement, ThreadPool& pool) {
  const TensorView& p = prediction.probability;
  if (refinement == Refinement::kOff) return std::make_unique<Enlarged>(p, pool);
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
    return std::make_unique<Refined>(
        nullptr, solve(image, guide, host_floats(p), prediction.trained_on, pool), pool);
  }
  auto planes = make_large_array<float>(3 * guide.size());
  fill_network_input(image, {guide.width, guide.height, {0, 0, 0}, {255, 255, 255}}, planes.get(),
                     pool);
  set_planes(planes.get());
  const auto resized = make_large_array<float>(guide.size());
  const std::span<float> alpha{resized.get(), guide.size()};
  resize_plane(host_floats(p), p.width, p.height, guide.width, guide.height, alpha, pool);
  SolvedEdges edges = solve(image, guide, alpha, prediction.trained_on, pool);
  return std::make_unique<Refined>(std::move(planes), std::move(edges), pool);
}

}  // namespace cutout
