#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "image/network_input.h"
#include "matte/summary.h"
#include "pipeline/plan.h"

namespace cutout {

/// A network's output as alpha, and the input that it was computed from.
struct CoarseMatte {
  std::span<const float> input;  // as fill_network_input wrote it
  NetworkInput spec;
  std::span<const float> alpha;  // 0..1
  int width = 0;                 // of alpha
  int height = 0;
  TrainedOn trained_on = TrainedOn::kMasks;
};

/// Multiplies the image's alpha with a matte at the network's size; the image has the plan's size.
/// The matte is refined with the image as guide: colour sampling for networks trained on masks
/// (matte/colour_sampling.h), then guided upsampling (matte/guided_upsample.h). Where the plan
/// wants no refinement, it is enlarged by the spline alone (matte/apply.h).
///
/// The guide is the network's input. Where the output has another size, or is larger than the
/// image, it is averaged to at most the image's size and the guide is computed from the image.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | image     | as guided_upsample and apply_matte                                                     |
/// | scratch   | 24 bytes for each value of the output, 16 more where the guide is computed, besides    |
/// |           | theirs                                                                                 |
/// | threads   | same bytes and summary for any number of threads                                       |
MatteSummary refine_matte(ImageView image, const CoarseMatte& coarse, const MattePlan& plan,
                          ThreadPool& pool);

}  // namespace cutout
