#include "pipeline/infer.h"

#include "matte/component_filter.h"

namespace cutout {

Status run_network(LoadedNetwork& loaded, const NetworkInput& input, bool usual_size,
                   const StageContext& context, TensorView& probability, Clock::duration& waited) {
  const int slot = context.slot;
  if (loaded.batcher && usual_size) {
    Clock::duration for_batch{0};
    CUTOUT_RETURN_IF_ERROR(loaded.batcher->run(slot, context.token, for_batch));
    waited += for_batch;
    probability = loaded.network->output_plane(slot);
  } else {
    CUTOUT_RETURN_IF_ERROR(
        loaded.network->run(slot, input.width, input.height, context.token, probability));
  }
  CUTOUT_RETURN_IF_ERROR(context.backend.to_probability(probability, loaded.spec.output));
  return context.token.check();
}

Status measure_uncertainty(const StageContext& context, const Prepared& prepared,
                           const Prediction& answer, Uncertainty& uncertainty) {
  CUTOUT_RETURN_IF_ERROR(context.backend.uncertainty(
      answer.probability, prediction_area(prepared, answer.probability), uncertainty));
  return context.token.check();
}

Status infer(const MatteJob& job, const StageContext& context, const Prepared& prepared,
             Inferred& inferred) {
  Prediction& answer = inferred.answer;
  answer = {{}, prepared.input, prepared.spec, job.network.spec.trained_on};
  if (prepared.reused) {
    const CachedOutput& cached = *job.plan.cached;
    CUTOUT_RETURN_IF_ERROR(
        context.backend.allocate(1, cached.height, cached.width, inferred.cached));
    answer.probability = inferred.cached.view;
    CUTOUT_RETURN_IF_ERROR(context.backend.upload(cached.values, answer.probability));
    return measure_uncertainty(context, prepared, answer, inferred.first);
  }
  CUTOUT_RETURN_IF_ERROR(run_network(job.network, prepared.spec, prepared.usual_size, context,
                                     answer.probability, inferred.waited));
  ++inferred.runs;
  return measure_uncertainty(context, prepared, answer, inferred.first);
}

Box prediction_area(const Prepared& prepared, const TensorView& probability) {
  return network_area(prepared.roi, prepared.view.width, prepared.view.height, probability.width,
                      probability.height);
}

}  // namespace cutout
