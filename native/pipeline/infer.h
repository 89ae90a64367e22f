#pragma once

#include "core/cancel.h"
#include "core/status.h"
#include "core/tensor.h"
#include "pipeline/matte_job.h"
#include "pipeline/prepare.h"

namespace cutout {

/// What the networks say about an image.
struct Inferred {
  TensorView probability;  // 0..1; of the slot, or in `kept`
  Tensor kept;             // the plan's prediction, where that is reused
  // The prediction, at a smaller size than usual, is to be discarded: the caller prepares the usual
  // size and infers again.
  bool ambiguous = false;
  int runs = 0;               // of the first network
  Clock::duration waited{0};  // for batches
};

/// Stage 2, from the network's input to its prediction: runs the network and converts its output to
/// 0..1; then runs the second one on the same image at its own usual size and fuses both
/// (matte/fusion.h). Runs at the usual size wait for a batch where the network has a batcher. No
/// network runs where the plan brings the prediction.
Status infer(const MatteJob& job, const StageContext& context, const Prepared& prepared,
             Inferred& inferred);

/// The pixels of a prediction that the plan's region of interest depends on.
Box prediction_area(const Prepared& prepared, const TensorView& probability);

}  // namespace cutout
