#include <memory>
#include <string>
#include <vector>

#include "images.h"
#include "ort/runtime.h"
#include "pipeline/subject_detector.h"
#include "registry.h"

namespace cutout::test {

namespace {

void check(Napi::Env env, const Status& status) {
  if (!status.ok()) throw Napi::Error::New(env, status.message());
}

/// openDetector(runtimePath, { path, width, height }, threads): a detector of subject types without
/// a head, for subjectFeatures().
Napi::Value open_detector_js(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  check(env, ort::open_runtime(info[0].ToString()));
  const auto spec = info[1].As<Napi::Object>();
  ort::NetworkOptions options;
  options.path = spec.Get("path").ToString();
  options.width = spec.Get("width").ToNumber().Int32Value();
  options.height = spec.Get("height").ToNumber().Int32Value();
  options.intra_op_threads = info[2].ToNumber().Int32Value();
  options.outputs = 2;
  auto types = std::make_unique<SubjectClassifier>();
  types->input = {options.width, options.height, {0, 0, 0}, {1, 1, 1}};
  check(env, ort::Network::open(options, CancelToken{}, types->detector));
  check(env, fit_classifier(*types));
  return Napi::External<SubjectClassifier>::New(
      env, types.release(), [](Napi::Env, SubjectClassifier* owned) { delete owned; });
}

/// subjectFeatures(detector, image, { data, width, height }, threads): the features of the image
/// under that matte, in the order of native/classify/features.h.
Napi::Value subject_features_js(const Napi::CallbackInfo& info) {
  const SubjectClassifier& types = *info[0].As<Napi::External<SubjectClassifier>>().Data();
  const auto matte = info[2].As<Napi::Object>();
  const CancelToken token;
  ThreadPool pool(info[3].ToNumber().Int32Value());
  DetectorRun detector(types, 0, to_image(info[1]), {}, token, pool);
  std::vector<float> features;
  check(info.Env(),
        detector.finish({to_floats(matte.Get("data")), matte.Get("width").ToNumber().Int32Value(),
                         matte.Get("height").ToNumber().Int32Value()},
                        features));
  return from_floats(info.Env(), features);
}

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("openDetector", Napi::Function::New(env, open_detector_js));
  exports.Set("subjectFeatures", Napi::Function::New(env, subject_features_js));
});

}  // namespace

}  // namespace cutout::test
