#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/cancel.h"
#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "matte/summary.h"
#include "ort/network.h"
#include "pipeline/plan.h"
#include "pipeline/subject_detector.h"
#include "sched/batcher.h"

namespace cutout {

struct LoadedNetwork {
  NetworkSpec spec;
  std::unique_ptr<ort::Network> network;
  std::unique_ptr<Batcher> batcher;  // of runs at the usual size; null: each runs alone
};

struct MatteResult {
  int width = 0;
  int height = 0;
  MatteSummary summary;
  std::optional<Subject> subject;
  int runs = 0;  // of the first network: 2 when its first output was ambiguous, 0 when it was kept
  std::vector<float> output;  // of the networks, if it is to be kept; then:
  int output_width = 0;
  int output_height = 0;
  Box output_view;
  double queue_ms = 0;
  double prepare_ms = 0;
  double infer_ms = 0;    // of all networks, with the fusion of their outputs
  double subject_ms = 0;  // for the subject's type after the network's run, waiting included
  double matte_ms = 0;
};

/// Converts a network's output to 0..1, in place: sigmoid for logits, then clamped. kModel when a
/// value is infinite or NaN.
Status to_probability(std::span<float> values, NetworkOutput output, ThreadPool& pool);

/// Makes one matte, on the calling thread and idle threads of the pool. These are the parts of step
/// 5 (pipeline) of a request in docs/architecture.md:
///
///  1. Resize and normalise the image into the slot's input; where the plan has a mask, the part of
///     the image around what the mask shows (mask_view), to which steps 2, 3 and 5 then apply.
///  2. Run the network and convert its output to 0..1. Where the plan asks for the subject's type,
///     the detector runs at the same time. Then, where there is a second network, run it on the
///     same image and fuse its output with the first (matte/fusion.h).
///     Skipped where the plan brings the output for the same part.
///  3. Constrain the output by the mask (matte/mask_constraint.h). Remove connected components that
///     are no subject and fill holes (matte/component_filter.h), then classify the subject.
///  4. Reduce the image to the plan's size, if that is smaller.
///  5. Write alpha, foreground colours and hidden colours, and find the box (refinement.h).
///     Everything outside that part becomes transparent.
///
/// `token` is checked after every step. `pixels` are RGBA8 without row padding; steps 4 and 5 write
/// to them, and their content is undefined after an error there. `second` is null where one network
/// runs alone; `types` may be null where the plan does not ask for the subject's type.
Status make_matte(ImageView pixels, const MattePlan& plan, const LoadedNetwork& loaded,
                  const LoadedNetwork* second, const SubjectTypes* types, int slot,
                  const CancelToken& token, ThreadPool& pool, MatteResult& result);

}  // namespace cutout
