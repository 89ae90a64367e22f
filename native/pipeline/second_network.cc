#include "pipeline/second_network.h"

namespace cutout {

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
  CUTOUT_RETURN_IF_ERROR(
      run_network(second, spec, true, context, answer.probability, inferred.waited));
  double uncertainty = 1;
  CUTOUT_RETURN_IF_ERROR(measure_uncertainty(context, prepared, answer, uncertainty));
  look = uncertainty < inferred.uncertainty ? SecondLook::kTaken : SecondLook::kDeclined;
  if (look == SecondLook::kTaken) {
    inferred.answer = answer;
    inferred.uncertainty = uncertainty;
  }
  return {};
}

}  // namespace cutout
