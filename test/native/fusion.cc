#include "matte/fusion.h"

#include "registry.h"

namespace cutout::test {

namespace {

std::span<float> to_values(const Napi::Value& value) {
  auto array = value.As<Napi::Float32Array>();
  return {array.Data(), array.ElementLength()};
}

/// fuseOutputs(first, second, width, height, threads), threads -1 for the scalar version: changes
/// first.
Napi::Value fuse_outputs_js(const Napi::CallbackInfo& info) {
  const std::span<float> first = to_values(info[0]);
  const std::span<const float> second = to_values(info[1]);
  const int width = info[2].ToNumber().Int32Value();
  const int height = info[3].ToNumber().Int32Value();
  const int threads = info[4].ToNumber().Int32Value();
  FusionSummary summary;
  if (threads < 0) {
    summary = fuse_outputs_scalar(first, second, width, height);
  } else {
    ThreadPool pool(threads);
    summary = fuse_outputs(first, second, width, height, pool);
  }
  auto result = Napi::Object::New(info.Env());
  result.Set("regions", summary.regions);
  result.Set("replaced", summary.replaced);
  return result;
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("fuseOutputs", Napi::Function::New(env, fuse_outputs_js));
});

}  // namespace cutout::test
