#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "classify/features.h"
#include "classify/head.h"
#include "core/cancel.h"
#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "image/network_input.h"
#include "ort/network.h"

namespace cutout {

/// What tells subject types apart: a detector, which always runs on the CPU, and a head on what it
/// finds. Without a head features can be had and no types (training).
struct SubjectTypes {
  NetworkInput input;
  std::unique_ptr<ort::Network> detector;
  DetectorShape shape;
  std::optional<Head> head;
};

/// Checks that detector and head fit each other and completes `types.shape`: RGB 0..255 in a square
/// of at least 8, two outputs of square maps, a head for their features. kModel if not.
Status fit_subject_types(SubjectTypes& types);

/// A picture that a network already reads: planes R, G, B, value (v - mean) / std.
struct Planes {
  std::span<const float> values;
  NetworkInput spec;
};

/// The detector's part in one job. It begins on a thread of the pool when the object is made and
/// runs beside whatever its owner does; if no thread was free until then, finish() does the work.
///
/// | limit   |                                                                             |
/// |---------|-----------------------------------------------------------------------------|
/// | source  | read until finish() returned or the object is gone; nobody may write to it  |
/// | planes  | likewise; used instead of the source's colours where they are large enough  |
/// | slot    | of the detector; the job's alone meanwhile                                  |
/// | result  | the same bits whichever thread did the work                                 |
class SubjectJob {
 public:
  SubjectJob(const SubjectTypes& types, int slot, ConstImageView source, const Planes& planes,
             const CancelToken& token, ThreadPool& pool);
  ~SubjectJob();  // waits for work under way, takes back what has not begun
  SubjectJob(const SubjectJob&) = delete;
  SubjectJob& operator=(const SubjectJob&) = delete;

  /// Waits for the detector or does its work: nothing reads source and planes afterwards.
  void settle();

  /// Waits for the detector, or does its work, and joins what it found with the matte. kModel when
  /// the detector gave a value that is infinite or not a number: nothing can be told from it.
  Status finish(const Matte& matte, std::vector<float>& features);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cutout
