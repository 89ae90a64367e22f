#pragma once

#include <memory>
#include <optional>

#include "core/image_view.h"
#include "core/status.h"
#include "core/tensor.h"
#include "image/network_input.h"
#include "pipeline/backend.h"
#include "pipeline/matte_job.h"

namespace cutout {

/// What the network is to see of a job's image.
struct Prepared {
  Box view;  // the part of the result that the network sees
  Box roi;   // the plan's, in pixels of the view
  std::unique_ptr<JobImage> image;
  Box part;  // what the view shows, in pixels of the decoded image
  NetworkInput spec;
  bool usual_size = true;           // of the spec
  bool returns_output = false;      // the prediction is part of the job's result
  bool reused = false;              // the plan brings the prediction: no matting network runs
  std::optional<TensorView> input;  // of the job's slot; none where nobody reads it
};

/// Stage 1, from the image to the network's input: chooses the part of the image that the network
/// sees (with a mask the part around what that shows, mask_view) and resizes and normalises it.
/// kModel for a size that the network cannot run at.
Status prepare(const MatteJob& job, const StageContext& context, Prepared& prepared);

/// The same image at the network's usual size, after a smaller one left the prediction in doubt.
Status prepare_at_usual_size(const MatteJob& job, const StageContext& context, Prepared& prepared);

}  // namespace cutout
