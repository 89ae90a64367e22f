#pragma once

#include <algorithm>
#include <optional>

#include "core/status.h"
#include "matte/math/uncertainty.h"
#include "pipeline/backend.h"
#include "pipeline/infer.h"
#include "pipeline/matte_job.h"
#include "pipeline/prepare.h"
#include "pipeline/subject_detector.h"

namespace cutout {

/// Whether a second network is to look too (decision 0273): patches are unsure, and half of what is
/// unsure at least lies in them, not in edges, hair and meshes.
inline constexpr double kUnsure = 0.05;
inline bool needs_second_look(const Uncertainty& first) {
  return first.patches > kUnsure && first.whole <= 2 * first.patches;
}

/// Whether the second network's answer is to be taken: it has to be surer, and the more so the
/// surer the first one is: about a third as unsure at kUnsure, just less from patches of 1 / kSurer
/// on.
inline constexpr double kSurer = 7;
inline bool is_surer(const Uncertainty& second, const Uncertainty& first) {
  return second.whole < std::min(1.0, kSurer * first.patches) * first.whole;
}

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
