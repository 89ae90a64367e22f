#pragma once

#include <memory>

#include "core/status.h"
#include "pipeline/backend.h"
#include "pipeline/infer.h"
#include "pipeline/matte_job.h"
#include "pipeline/prepare.h"

namespace cutout {

/// Stage 3, first half: what the subject is. Constrains the prediction by the mask
/// (matte/mask_constraint.h), removes connected components that are no subject and fills holes
/// (matte/component_filter.h), in place.
Status filter_components(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                         const Inferred& inferred);

/// Stage 3, second half: how its edge is, from the prediction to alpha and colours. The backend
/// solves it: refinement.h on a CPU, device_backend.h on a GPU. First reduces the job's image to
/// the plan's size, in place. The matte borrows the tensors and the image of the stages before.
Status solve(const MatteJob& job, const StageContext& context, Prepared& prepared,
             const Inferred& inferred, std::unique_ptr<SolvedMatte>& solved);

}  // namespace cutout
