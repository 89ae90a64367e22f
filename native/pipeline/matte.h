#pragma once

#include <optional>
#include <vector>

#include "classify/subject_head.h"
#include "core/image_view.h"
#include "core/status.h"
#include "matte/summary.h"
#include "pipeline/second_network.h"

namespace cutout {

struct MatteResult {
  int width = 0;
  int height = 0;
  MatteSummary summary;
  std::optional<Subject> subject;
  int runs = 0;  // of the first network: 2 when a smaller input left it in doubt, 0 when the plan
                 // brought its output
  double uncertainty = 1;  // of the answer, 0..1 (Inferred)
  SecondLook second_look = SecondLook::kNone;
  std::vector<float> output;  // of the networks, if it is to be kept; then:
  int output_width = 0;
  int output_height = 0;
  Box output_view;
  double queue_ms = 0;
  double prepare_ms = 0;
  double infer_ms = 0;    // of all networks
  double subject_ms = 0;  // for the subject's type after the network's run, waiting included
  double matte_ms = 0;
};

/// Makes one matte in four stages, on the calling thread and idle threads of the pool. They are
/// what step 5 (pipeline) of a request in docs/architecture.md needs of a matte:
///
/// | stage   | from                | to                                      | file      |
/// |---------|---------------------|-----------------------------------------|-----------|
/// | prepare | image               | the network's input                     | prepare.h |
/// | infer   | the network's input | probability at the network's size       | infer.h   |
/// | solve   | probability         | alpha and colours at the network's size | backend.h |
/// | write   | alpha and colours   | the image, at the plan's size           | backend.h |
///
/// Between two stages is a tensor (core/tensor.h); the kernels are those of the context's backend.
/// A prediction at a smaller size than usual that is in doubt (matte/uncertainty.h) is discarded,
/// and the first two stages are passed again at the usual size: the second run waits for a batch
/// like that of any other job. Where one at the usual size needs a second look and the job has a
/// second network, that looks at the same image, and its answer is taken as a whole where it is
/// surer (infer.h): what follows works at that network's size, with its input. Where the subject
/// is to be classified, the detector runs beside the network.
///
/// The token is checked after every step, and on the host by the job's pool (ThreadPool) before
/// every range of a loop. Solve and write change the pixels, whose content is
/// undefined after an error there. Adds its wait for batches to result.queue_ms.
Status make_matte(const MatteJob& job, const StageContext& context, MatteResult& result);

}  // namespace cutout
