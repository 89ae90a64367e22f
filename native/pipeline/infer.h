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
  double uncertainty = 1;     // of the answer (matte/uncertainty.h)
  int runs = 0;               // of the first network
  Clock::duration waited{0};  // for batches
};

/// Stage 2, from the network's input to its prediction: runs the job's first network, converts
/// its output to 0..1 and measures its uncertainty. Runs at the usual size wait for a batch where
/// the network has a batcher. No network runs where the plan brings the prediction.
Status infer(const MatteJob& job, const StageContext& context, const Prepared& prepared,
             Inferred& inferred);

/// What came of a second network's look at an image: it was not asked, its answer was no surer than
/// the first network's, or it was taken.
enum class SecondLook { kNone, kDeclined, kTaken };

/// Runs the job's second network on the same part of the image, at that network's own usual size,
/// and takes its whole answer where it is surer of it than the first network is of its own; both
/// are never mixed. The answer taken borrows the second network's slot. The caller has checked that
/// the job has a second network.
Status look_again(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                  Inferred& inferred, SecondLook& look);

/// The pixels of a prediction that the plan's region of interest depends on.
Box prediction_area(const Prepared& prepared, const TensorView& probability);

}  // namespace cutout
