#pragma once

#include "core/cancel.h"
#include "core/status.h"
#include "core/tensor.h"
#include "pipeline/backend.h"
#include "pipeline/matte_job.h"
#include "pipeline/prepare.h"

namespace cutout {

/// What the networks say about an image.
struct Inferred {
  // The answer that the next stages work on. It borrows the tensors of its network's slot, or
  // `cached`.
  Prediction answer;
  Tensor cached;              // the plan's prediction, where that is reused
  Uncertainty first;          // how sure the first network is of its answer
  double uncertainty = 1;     // of `answer`, 0..1; where that is the second network's, of both
  int runs = 0;               // of the first network
  Clock::duration waited{0};  // for batches
};

/// Stage 2, from the network's input to its prediction: runs the job's first network, converts
/// its output to 0..1 and measures its uncertainty. Runs at the usual size wait for a batch where
/// the network has a batcher. No network runs where the plan brings the prediction.
Status infer(const MatteJob& job, const StageContext& context, const Prepared& prepared,
             Inferred& inferred);

/// Runs a network of the job on the answer's input in the slot, at its usual size or not; converts
/// its output to 0..1, measures how uncertain it is in what the plan's region of interest depends
/// on, and adds to `waited` what it waited for a batch.
Status run_network(LoadedNetwork& loaded, bool usual_size, const StageContext& context,
                   const Prepared& prepared, Prediction& answer, Uncertainty& uncertainty,
                   Clock::duration& waited);

/// The pixels of a prediction that the plan's region of interest depends on.
Box prediction_area(const Prepared& prepared, const TensorView& probability);

}  // namespace cutout
