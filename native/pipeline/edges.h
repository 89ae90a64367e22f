#pragma once

#include <array>
#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "image/network_input.h"
#include "matte/summary.h"
#include "pipeline/matte.h"

namespace cutout {

/// What a network saw and answered.
struct NetworkAnswer {
  std::span<const float> input;  // as fill_network_input wrote it
  NetworkInput spec;
  std::span<const float> alpha;  // 0..1
  int width = 0;                 // of alpha
  int height = 0;
  TaughtOn taught_on = TaughtOn::kMasks;
};

/// Writes the network's alpha into the picture, which has the plan's size: with the picture as
/// guide, first for what a network taught on masks draws too solid (matte/correct.h), then for what
/// is finer than its cells (matte/refine.h); or upsampled as it is (matte/apply.h) where the plan
/// wants no refinement.
///
/// The guide is the network's own input. Where alpha has another size than that, or the picture
/// fewer pixels than alpha has values, alpha is averaged to the picture's size and the guide made
/// again from the picture.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | picture   | as refine_matte and apply_matte                                                        |
/// | scratch   | 24 bytes a value of alpha, 16 more for a guide that has to be made, besides theirs     |
/// | threads   | same bytes and summary for any number of threads                                       |
MatteSummary write_edges(ImageView picture, const NetworkAnswer& answer, const MattePlan& plan,
                         ThreadPool& pool);

}  // namespace cutout
