#include "pipeline/second_network.h"

#include <cmath>

#include "matte/uncertainty.h"

namespace cutout {

namespace {

/// Runs the job's second network on the same part of the image, at that network's own usual size,
/// and takes its whole answer where it is surer of it than the first network is of its own; both
/// are never mixed. The answer taken borrows the second network's slot, and both networks count in
/// its uncertainty, by their geometric mean. The caller has checked that the job has a second
/// network.
Status look_again(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                  Inferred& inferred, SecondLook& look) {
  LoadedNetwork& second = job.second.value();
  const NetworkInput& spec = second.spec.input;
  Prediction answer{{},
                    second.network->input_tensor(context.slot, spec.width, spec.height),
                    spec,
                    second.spec.trained_on};
  CUTOUT_RETURN_IF_ERROR(
      context.backend.fill_input(*prepared.image, prepared.part, spec, *answer.input));
  CUTOUT_RETURN_IF_ERROR(context.token.check());
  Uncertainty uncertainty;
  CUTOUT_RETURN_IF_ERROR(
      run_network(second, true, context, prepared, answer, uncertainty, inferred.waited));
  look = is_surer(uncertainty, inferred.first) ? SecondLook::kTaken : SecondLook::kDeclined;
  if (look == SecondLook::kTaken) {
    inferred.answer = answer;
    inferred.uncertainty = std::sqrt(inferred.first.whole * uncertainty.whole);
  }
  return {};
}

}  // namespace

Status answer_of_networks(const MatteJob& job, const StageContext& context, Prepared& prepared,
                          std::optional<DetectorRun>& detector, Inferred& inferred,
                          SecondLook& look) {
  CUTOUT_RETURN_IF_ERROR(infer(job, context, prepared, inferred));
  if (inferred.first.patches > kDoubtful && !prepared.usual_size) {
    if (detector) detector->complete();  // it reads the slot's input, which is overwritten now
    CUTOUT_RETURN_IF_ERROR(prepare_at_usual_size(job, context, prepared));
    CUTOUT_RETURN_IF_ERROR(infer(job, context, prepared, inferred));
  }
  inferred.uncertainty = inferred.first.whole;
  if (!job.second || prepared.reused || !prepared.usual_size ||
      !needs_second_look(inferred.first)) {
    return {};
  }
  return look_again(job, context, prepared, inferred, look);
}

}  // namespace cutout
