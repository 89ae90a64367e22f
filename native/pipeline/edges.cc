#include "pipeline/edges.h"

#include <algorithm>
#include <vector>

#include "image/plane.h"
#include "matte/apply.h"
#include "matte/correct.h"
#include "matte/refine.h"

namespace cutout {

namespace {

MatteSummary refine(ImageView picture, const Guide& guide, std::span<const float> alpha,
                    TaughtOn taught_on, const MattePlan& plan, ThreadPool& pool) {
  if (taught_on == TaughtOn::kMattes) {
    return refine_matte(picture, guide, alpha, plan.roi, plan.hidden, pool);
  }
  const CorrectedAlpha corrected = correct_alpha(guide, alpha, pool);
  return refine_matte(picture, guide_after(guide, corrected),
                      {corrected.alpha.get(), guide.cells()}, plan.roi, plan.hidden, pool);
}

}  // namespace

MatteSummary write_edges(ImageView picture, const NetworkAnswer& answer, const MattePlan& plan,
                         ThreadPool& pool) {
  if (plan.refinement == Refinement::kOff) {
    return apply_matte(picture, answer.alpha, answer.width, answer.height, plan.roi, plan.hidden,
                       pool);
  }
  Guide guide;
  guide.width = std::min(answer.width, picture.width);
  guide.height = std::min(answer.height, picture.height);
  const NetworkInput& spec = answer.spec;
  if (guide.width == spec.width && guide.height == spec.height && guide.width == answer.width &&
      guide.height == answer.height) {
    for (std::size_t c = 0; c < 3; ++c) {
      guide.planes[c] = answer.input.data() + c * guide.cells();
      guide.scale[c] = spec.std[c] / 255.0F;
      guide.offset[c] = spec.mean[c] / 255.0F;
    }
    return refine(picture, guide, answer.alpha, answer.taught_on, plan, pool);
  }
  std::vector<float> planes(3 * guide.cells());
  fill_network_input(picture, {guide.width, guide.height, {0, 0, 0}, {255, 255, 255}},
                     planes.data(), pool);
  for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes.data() + c * guide.cells();
  std::vector<float> alpha(guide.cells());
  resize_plane(answer.alpha, answer.width, answer.height, guide.width, guide.height, alpha, pool);
  return refine(picture, guide, alpha, answer.taught_on, plan, pool);
}

}  // namespace cutout
