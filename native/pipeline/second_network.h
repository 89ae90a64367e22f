#pragma once

#include <optional>

#include "core/status.h"
#include "pipeline/backend.h"
#include "pipeline/infer.h"
#include "pipeline/matte_job.h"
#include "pipeline/prepare.h"
#include "pipeline/subject_detector.h"

namespace cutout {

/// What came of a second network's look at an image: it was not asked, its answer was no surer than
/// the first network's, or it was taken.
enum class SecondLook { kNone, kDeclined, kTaken };

/// Stage 2 of a job that may have a second network. The answer is the first network's,
/// made again at the usual size where a smaller one leaves it in doubt, or, where it still is, the
/// second network's if that is surer. `detector` reads the slot's input, if it was started.
Status answer_of_networks(const MatteJob& job, const StageContext& context, Prepared& prepared,
                          std::optional<DetectorRun>& detector, Inferred& inferred,
                          SecondLook& look);

}  // namespace cutout
