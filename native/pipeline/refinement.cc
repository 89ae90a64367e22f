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
                    TaughtOn taught_on, const MattePlan& plan, ThreadPool& pool) {
  if (taught_on == TaughtOn::kMattes) {
    return guided_upsample(image, guide, alpha, plan.roi, plan.hidden, pool);
  }
  const ColourSampling sampling = sample_colours(guide, alpha, pool);
  return guided_upsample(image, with_samples(guide, sampling), {sampling.alpha.get(), guide.size()},
                         plan.roi, plan.hidden, pool);
}

}  // namespace

MatteSummary write_matte(ImageView image, const NetworkAnswer& answer, const MattePlan& plan,
                         ThreadPool& pool) {
  if (plan.refinement == Refinement::kOff) {
    return apply_matte(image, answer.alpha, answer.width, answer.height, plan.roi, plan.hidden,
                       pool);
  }
  Guide guide;
  guide.width = std::min(answer.width, image.width);
  guide.height = std::min(answer.height, image.height);
  const NetworkInput& spec = answer.spec;
  if (guide.width == spec.width && guide.height == spec.height && guide.width == answer.width &&
      guide.height == answer.height) {
    for (std::size_t c = 0; c < 3; ++c) {
      guide.planes[c] = answer.input.data() + c * guide.size();
      guide.scale[c] = spec.std[c] / 255.0F;
      guide.offset[c] = spec.mean[c] / 255.0F;
    }
    return refine(image, guide, answer.alpha, answer.taught_on, plan, pool);
  }
  const auto planes = make_large_array<float>(3 * guide.size());
  fill_network_input(image, {guide.width, guide.height, {0, 0, 0}, {255, 255, 255}}, planes.get(),
                     pool);
  for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes.get() + c * guide.size();
  const auto resized = make_large_array<float>(guide.size());
  const std::span<float> alpha{resized.get(), guide.size()};
  resize_plane(answer.alpha, answer.width, answer.height, guide.width, guide.height, alpha, pool);
  return refine(image, guide, alpha, answer.taught_on, plan, pool);
}

}  // namespace cutout
