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
  Tensor cached;  // the plan's prediction, where that is reused
  // The prediction, at a smaller size than usual, is to be discarded: the caller prepares the usual
  // size and infers again.
  bool ambiguous = false;
  int runs = 0;               // of the first network
  Clock::duration waited{0};  // for batches
};

/// Stage 2, from the network's input to its prediction: runs the job's first network and converts
/// its output to 0..1. Runs at the usual size wait for a batch where the network has a batcher. No
/// network runs where the plan brings the prediction.
Status infer(const MatteJob& job, const StageContext& context, const Prepared& prepared,
             Inferred& inferred);

/// Runs the job's second network on the same part of the image, at that network's own usual size,
/// and returns its whole answer at that size in 0..1. The answer borrows the second network's slot,
/// so that the first one's stays valid; the caller has checked that the job has a second network.
/// Adds to `waited` what the run waited for a batch.
Status infer_second(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                    Prediction& answer, Clock::duration& waited);

/// Returns that of two networks' answers to one image which the next stages work on, as a whole;
/// they may have different sizes. It is always the first.
const Prediction& choose_answer(const Prediction& first, const Prediction& second);

/// The pixels of a prediction that the plan's region of interest depends on.
Box prediction_area(const Prepared& prepared, const TensorView& probability);

}  // namespace cutout
