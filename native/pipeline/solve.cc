#include "pipeline/solve.h"

#include <optional>

namespace cutout {

Status filter_components(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                         const Inferred& inferred) {
  std::optional<PlacedMask> mask;
  if (job.plan.mask) mask = {*job.plan.mask, job.plan.width, job.plan.height, prepared.view};
  const TensorView& probability = inferred.answer.probability;
  CUTOUT_RETURN_IF_ERROR(
      context.backend.filter_components(probability, prediction_area(prepared, probability), mask));
  return context.token.check();
}

Status solve(const MatteJob& job, const StageContext& context, Prepared& prepared,
             const Inferred& inferred, std::unique_ptr<SolvedMatte>& solved) {
  const MattePlan& plan = job.plan;
  JobImage& image = *prepared.image;
  if (plan.width != image.width() || plan.height != image.height()) {
    CUTOUT_RETURN_IF_ERROR(context.backend.reduce(image, plan.width, plan.height));
    CUTOUT_RETURN_IF_ERROR(context.token.check());
  }
  CUTOUT_RETURN_IF_ERROR(context.backend.solve(image, prepared.view, inferred.answer, solved));
  return context.token.check();
}

}  // namespace cutout
