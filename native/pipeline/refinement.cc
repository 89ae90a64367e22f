#include "pipeline/refinement.h"

#include <algorithm>
#include <span>

#include "core/large_memory.h"
#include "image/plane.h"
#include "matte/apply.h"
#include "matte/colour_sampling.h"
#include "matte/guided_upsample.h"

namespace cutout {

namespace {

MatteSummary refine(ImageView image, const Guide& guide, std::span<const float> alpha,
                    TrainedOn trained_on, const MattePlan& plan, ThreadPool& pool) {
  if (trained_on == TrainedOn::kMattes) {
    return guided_upsample(image, guide, alpha, plan.roi, plan.hidden_colour, pool);
  }
  const ColourSampling sampling = sample_colours(guide, alpha, pool);
  return guided_upsample(image, with_samples(guide, sampling), {sampling.alpha.get(), guide.size()},
                         plan.roi, plan.hidden_colour, pool);
}

}  // namespace

MatteSummary refine_matte(ImageView image, const CoarseMatte& coarse, const MattePlan& plan,
                          ThreadPool& pool) {
  if (plan.refinement == Refinement::kOff) {
    return apply_matte(image, coarse.alpha, coarse.width, coarse.height, plan.roi,
                       plan.hidden_colour, pool);
  }
  Guide guide;
  guide.width = std::min(coarse.width, image.width);
  guide.height = std::min(coarse.height, image.height);
  const NetworkInput& spec = coarse.spec;
  if (guide.width == spec.width && guide.height == spec.height && guide.width == coarse.width &&
      guide.height == coarse.height) {
    for (std::size_t c = 0; c < 3; ++c) {
      guide.planes[c] = coarse.input.data() + c * guide.size();
      guide.scale[c] = spec.std[c] / 255.0F;
      guide.offset[c] = spec.mean[c] / 255.0F;
    }
    return refine(image, guide, coarse.alpha, coarse.trained_on, plan, pool);
  }
  const auto planes = make_large_array<float>(3 * guide.size());
  fill_network_input(image, {guide.width, guide.height, {0, 0, 0}, {255, 255, 255}}, planes.get(),
                     pool);
  for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes.get() + c * guide.size();
  const auto resized = make_large_array<float>(guide.size());
  const std::span<float> alpha{resized.get(), guide.size()};
  resize_plane(coarse.alpha, coarse.width, coarse.height, guide.width, guide.height, alpha, pool);
  return refine(image, guide, alpha, coarse.trained_on, plan, pool);
}

}  // namespace cutout
