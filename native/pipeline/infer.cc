#include "pipeline/infer.h"

#include "matte/component_filter.h"

namespace cutout {

namespace {

/// Converts an answer, and measures how uncertain it is in what the plan's region of interest
/// depends on.
Status read_answer(const StageContext& context, const Prepared& prepared, NetworkOutput output,
                   const Prediction& answer, Uncertainty& uncertainty) {
  CUTOUT_RETURN_IF_ERROR(context.backend.to_probability(
      answer.probability, output, prediction_area(prepared, answer.probability), uncertainty));
  return context.token.check();
}

}  // namespace

Status run_network(LoadedNetwork& loaded, bool usual_size, const StageContext& context,
                   const Prepared& prepared, Prediction& answer, Uncertainty& uncertainty,
                   Clock::duration& waited) {
  const int slot = context.slot;
  Network& network = *loaded.network;
  if (usual_size) {
    answer.probability = network.output_plane(slot);
    context.backend.expect_answer(network, slot, loaded.spec.output,
                                  prediction_area(prepared, answer.probability));
  }
  Clock::duration for_batch{0};
  CUTOUT_RETURN_IF_ERROR(loaded.batcher && usual_size
                             ? loaded.batcher->run(slot, context.token, for_batch)
                             : network.run(slot, answer.spec.width, answer.spec.height,
                                           context.token, answer.probability));
  waited += for_batch;
  return read_answer(context, prepared, loaded.spec.output, answer, uncertainty);
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
    return read_answer(context, prepared, NetworkOutput::kProbability, answer, inferred.first);
  }
  ++inferred.runs;
  return run_network(job.network, prepared.usual_size, context, prepared, answer, inferred.first,
                     inferred.waited);
}

Box prediction_area(const Prepared& prepared, const TensorView& probability) {
  return network_area(prepared.roi, prepared.view.width, prepared.view.height, probability.width,
                      probability.height);
}

}  // namespace cutout
