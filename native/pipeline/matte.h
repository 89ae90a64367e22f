#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/cancel.h"
#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "image/network_input.h"
#include "matte/apply.h"
#include "ort/network.h"
#include "pipeline/subject.h"

namespace cutout {

/// What output 0 holds.
enum class NetworkOutput { kProbability, kLogit };

/// What a network learnt from: masks are 0 or 1 everywhere, alpha mattes are not.
enum class TaughtOn { kMasks, kMattes };

/// Fields as in src/engine/types.ts.
struct NetworkSpec {
  std::string name;
  std::string path;
  std::string save_to;  // empty: nowhere
  NetworkInput input;
  NetworkOutput output = NetworkOutput::kProbability;
  TaughtOn taught_on = TaughtOn::kMasks;
};

struct LoadedNetwork {
  NetworkSpec spec;
  std::unique_ptr<ort::Network> network;
};

/// Whether the edges of the network's answer are worked out at the picture's own size.
enum class Refinement { kOff, kOn };

struct MattePlan {
  int width = 0;  // of the result, at most the picture's
  int height = 0;
  HiddenColour hidden = HiddenColour::kClear;
  Box roi;  // in pixels of the result, inside it
  Refinement refinement = Refinement::kOn;
  bool subject = false;  // find out its type; needs types with a head
  // Of the network's input instead of its usual one, where its file leaves the size free; 0: usual.
  // When the answer is not decided (matte/decided.h), the network runs again at its usual size.
  int input_width = 0;
  int input_height = 0;
};

struct MatteResult {
  int width = 0;
  int height = 0;
  MatteSummary summary;
  std::optional<Subject> subject;
  int runs = 0;  // of the network: 2 when the first was not decided
  double queue_ms = 0;
  double prepare_ms = 0;
  double infer_ms = 0;
  double subject_ms = 0;  // waited for and spent on the subject's type after the run
  double matte_ms = 0;
};

/// Brings what a network gave to 0..1, in place: sigmoid for logits, then clamped. kModel when a
/// value is infinite or not a number: a broken network must not look like an empty picture.
Status to_probability(std::span<float> values, NetworkOutput output, ThreadPool& pool);

/// The numbered steps of one matte, on the calling thread and idle threads of the pool:
///  1. resize and normalise the picture into the slot's input
///  2. run the network, bring its output to 0..1; beside it, where the plan asks for the subject's
///     type, the detector
///  3. take away islands that are no subject, close dents inside one (matte/clean.h);
///     then the head says what the subject is by what the detector saw of it
///  4. reduce the picture to the plan's size, if that is smaller
///  5. write alpha, the subject's own colours and hidden colour, find the box (edges.h)
/// `token` is asked after every step. `pixels` are RGBA8 without row padding; steps 4 and 5 write
/// to them, so after an error in these their content is undefined.
/// `types` may be null where the plan does not ask for the type.
Status make_matte(ImageView pixels, const MattePlan& plan, const LoadedNetwork& loaded,
                  const SubjectTypes* types, int slot, const CancelToken& token, ThreadPool& pool,
                  MatteResult& result);

}  // namespace cutout
