#pragma once

#include "core/status.h"
#include "pipeline/infer.h"
#include "pipeline/matte_job.h"
#include "pipeline/prepare.h"

namespace cutout {

/// What came of a second network's look at an image: it was not asked, its answer was no surer than
/// the first network's, or it was taken.
enum class SecondLook { kNone, kDeclined, kTaken };

/// Runs the job's second network on the same part of the image, at that network's own usual size,
/// and takes its whole answer where it is surer of it than the first network is of its own; both
/// are never mixed. The answer taken borrows the second network's slot. The caller has checked that
/// the job has a second network.
Status look_again(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                  Inferred& inferred, SecondLook& look);

}  // namespace cutout
