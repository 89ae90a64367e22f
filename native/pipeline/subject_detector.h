#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "classify/features.h"
#include "classify/subject_head.h"
#include "core/cancel.h"
#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "image/network_input.h"
#include "ort/network.h"

namespace cutout {

/// The classifier of subject types: a detector, which always runs on the CPU, and a head on its
/// features. Without a head there are features only (for training).
struct SubjectClassifier {
  NetworkInput input;
  std::unique_ptr<ort::Network> detector;
  DetectorShape shape;
  std::optional<Head> head;
};

/// Checks that detector and head fit each other and sets `types.shape`. The input has to be a
/// square of at least 8 with RGB 0..255, both outputs square maps, and the head has to take their
/// features; else kModel.
Status fit_classifier(SubjectClassifier& types);

/// A network's input: planes R, G, B of (v - mean) / std; empty where there is none.
struct Planes {
  std::span<const float> values;
  NetworkInput spec;
};

/// The detector's run in one job, on a thread of the pool that is free after start(); without one,
/// complete() or finish() runs it in the caller.
///
/// | limit   |                                                                             |
/// |---------|-----------------------------------------------------------------------------|
/// | source  | read until complete() or finish() returns or the object is destroyed        |
/// | planes  | as source; used instead of the source's colours where they are large enough  |
/// | slot    | of the detector; not used by another job meanwhile                          |
/// | result  | the same bits on any thread                                                 |
class DetectorRun {
 public:
  DetectorRun(const SubjectClassifier& types, int slot, ConstImageView source, const Planes& planes,
              const CancelToken& token, ThreadPool& pool);
  ~DetectorRun();  // waits for a run that has started, cancels one that has not
  DetectorRun(const DetectorRun&) = delete;
  DetectorRun& operator=(const DetectorRun&) = delete;

  /// Offers the run to the pool.
  void start();

  /// Waits for the detector or runs it. Source and planes are not read afterwards.
  void complete();

  /// complete(), then the features of the detector's outputs under `matte`. kModel when an output
  /// holds a value that is infinite or NaN.
  Status finish(const Matte& matte, std::vector<float>& features);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cutout
