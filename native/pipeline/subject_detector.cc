#include "pipeline/subject_detector.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>

#include "core/scan.h"
#include "image/plane.h"

namespace cutout {

Status fit_classifier(SubjectClassifier& types) {
  const NetworkInput& input = types.input;
  const bool plain =
      std::all_of(input.mean.begin(), input.mean.end(), [](float m) { return m == 0; }) &&
      std::all_of(input.std.begin(), input.std.end(), [](float s) { return s == 1; });
  const auto& heatmaps = types.detector->output_shape(0);
  const auto& feature_maps = types.detector->output_shape(1);
  if (!plain || input.width != input.height || input.width < 8 || heatmaps[2] != heatmaps[3] ||
      feature_maps[2] != feature_maps[3]) {
    return {Code::kModel,
            "The detector of subject types has to read a square of RGB 0 to 255 and to "
            "give square maps."};
  }
  types.shape = {static_cast<int>(heatmaps[1]), static_cast<int>(heatmaps[2]),
                 static_cast<int>(feature_maps[1]), static_cast<int>(feature_maps[2])};
  const std::size_t features = feature_count(types.shape);
  if (types.head && types.head->inputs() != features) {
    return {Code::kModel, "The head of the subject types wants " +
                              std::to_string(types.head->inputs()) +
                              " features, the detector gives " + std::to_string(features) + "."};
  }
  return {};
}

/// Shared with the task in the pool's queue, which may outlive the job.
struct DetectorRun::State {
  const SubjectClassifier& types;
  int slot;
  ConstImageView source;
  Planes planes;
  const CancelToken& token;
  ThreadPool& pool;

  std::atomic<bool> claimed{false};
  std::mutex mutex{};
  std::condition_variable changed{};
  bool done = false;        // guarded by mutex
  Status status{};          // written before done is set
  ImageStatistics image{};  // written before done is set

  /// True for the first caller, which then runs the detector.
  bool claim() { return !claimed.exchange(true); }

  void fill() const {
    const std::span<float> out = types.detector->input(slot);
    const NetworkInput& to = types.input;
    const NetworkInput& from = planes.spec;
    if (planes.values.empty() || from.width < to.width || from.height < to.height) {
      fill_network_input(source, to, out.data(), pool);
      return;
    }
    // The network's input, averaged once more, instead of an image of up to 50 megapixels.
    const std::size_t plane_in = planes.values.size() / 3;
    const std::size_t plane_out = out.size() / 3;
    for (std::size_t c = 0; c < 3; ++c) {
      const std::span<float> plane = out.subspan(c * plane_out, plane_out);
      resize_plane(planes.values.subspan(c * plane_in, plane_in), from.width, from.height, to.width,
                   to.height, plane, pool);
      for (float& value : plane) value = value * from.std[c] + from.mean[c];
    }
  }

  Status work() {
    CUTOUT_RETURN_IF_ERROR(token.check());
    alpha_statistics(source, image.statistics);
    fill();
    image.thumbnail = make_thumbnail(types.detector->input(slot), types.input.width);
    border_statistics(image.thumbnail, image.statistics);
    CUTOUT_RETURN_IF_ERROR(types.detector->run(slot, token));
    for (const int output : {0, 1}) {
      if (!all_finite(types.detector->output(slot, output))) {
        return {Code::kModel, "Output " + std::to_string(output) +
                                  " of the detector of subject types holds values that are not "
                                  "finite numbers."};
      }
    }
    return {};
  }

  void run() {
    Status result = caught([this] { return work(); });
    {
      const std::lock_guard lock(mutex);
      status = std::move(result);
      done = true;
    }
    changed.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return done; });
  }
};

DetectorRun::DetectorRun(const SubjectClassifier& types, int slot, ConstImageView source,
                         const Planes& planes, const CancelToken& token, ThreadPool& pool)
    : state_(std::shared_ptr<State>(new State{types, slot, source, planes, token, pool})) {}

void DetectorRun::start() {
  try {
    state_->pool.submit([state = state_] {
      if (state->claim()) state->run();
    });
  } catch (const std::bad_alloc&) {
    // complete() runs it.
  }
}

DetectorRun::~DetectorRun() {
  if (!state_->claim()) state_->wait();
}

void DetectorRun::complete() {
  if (state_->claim()) {
    state_->run();
  } else {
    state_->wait();
  }
}

Status DetectorRun::finish(const Matte& matte, std::vector<float>& features) {
  complete();
  CUTOUT_RETURN_IF_ERROR(state_->status);
  const SubjectClassifier& types = state_->types;
  features.resize(feature_count(types.shape));
  join_features(types.shape, types.detector->output(state_->slot, 0),
                types.detector->output(state_->slot, 1), state_->image, matte, state_->pool,
                features);
  return {};
}

}  // namespace cutout
