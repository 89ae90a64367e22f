#pragma once

#include <memory>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "pipeline/backend.h"

namespace cutout {

/// The kernels of native/image and native/matte, on the caller's thread and idle threads of a pool,
/// which is used until the last call has returned.
std::unique_ptr<Backend> make_cpu_backend(ThreadPool& pool);

/// Refines a prediction with the image as guide: colour sampling for networks trained on masks
/// (matte/colour_sampling.h), then alpha and colours at the network's size
/// (matte/refine.h). The prediction is about `part` of the image, which has the result's size; only
/// the colours of the guide are read from it.
///
/// The guide is the network's input where input_is_guide(). Elsewhere the prediction is averaged to
/// at most the image's size, and the guide is computed from the image.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | borrowed  | image, the prediction's tensors and the pool, until the matte is destroyed             |
/// | image     | as write_edges                                                                         |
/// | scratch   | 24 bytes for each value of the output, 16 more where the guide is computed, besides    |
/// |           | theirs                                                                                 |
/// | threads   | same bytes for any number of threads                                                   |
std::unique_ptr<SolvedMatte> solve_matte(ImageView image, const Box& part,
                                         const Prediction& prediction, ThreadPool& pool);

}  // namespace cutout
