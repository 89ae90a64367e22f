#include "pipeline/solve.h"

#include <cstddef>
#include <optional>

namespace cutout {

Status find_subject(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                    const Inferred& inferred) {
  std::optional<PlacedMask> mask;
  if (job.plan.mask) mask = {*job.plan.mask, job.plan.width, job.plan.height, prepared.view};
  CUTOUT_RETURN_IF_ERROR(context.backend.find_subject(
      inferred.probability, prediction_area(prepared, inferred.probability), mask));
  return context.token.check();
}

Status solve(const MatteJob& job, const StageContext& context, const Prepared& prepared,
             const Inferred& inferred, Solved& solved) {
  const MattePlan& plan = job.plan;
  solved.image = job.pixels;
  if (plan.width != job.pixels.width || plan.height != job.pixels.height) {
    CUTOUT_RETURN_IF_ERROR(context.backend.reduce(job.pixels, plan.width, plan.height));
    CUTOUT_RETURN_IF_ERROR(context.token.check());
    solved.image = {job.pixels.data, plan.width, plan.height,
                    static_cast<std::ptrdiff_t>(plan.width) * 4};
  }
  const Prediction prediction{inferred.probability, prepared.input, prepared.spec,
                              job.network.spec.trained_on};
  return context.backend.solve(part_of(solved.image, prepared.view), prediction, plan.refinement,
                               solved.matte);
}

}  // namespace cutout
