#pragma once

#include "core/status.h"
#include "matte/summary.h"
#include "pipeline/matte_job.h"
#include "pipeline/prepare.h"
#include "pipeline/solve.h"

namespace cutout {

/// Stage 4, from the solved matte into the caller's buffer: alpha, foreground colours and hidden
/// colours. Everything outside the view becomes transparent.
Status write(const MatteJob& job, const Prepared& prepared, const Solved& solved,
             MatteSummary& summary);

}  // namespace cutout
