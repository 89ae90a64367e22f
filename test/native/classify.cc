#include "classify/features.h"
#include "classify/pool.h"
#include "classify/statistics.h"
#include "images.h"
#include "registry.h"

namespace cutout::test {

namespace {

/// poolMaps(maps, weights, scalar): four numbers a map.
Napi::Value pool_maps_js(const Napi::CallbackInfo& info) {
  std::vector<float> out;
  const auto pool = info[2].ToBoolean().Value() ? pool_maps_scalar : pool_maps;
  for (const Pooled& pooled : pool(to_floats(info[0]), to_floats(info[1]))) {
    out.insert(out.end(), {pooled.weighted_mean, pooled.mean, pooled.weighted_max, pooled.max});
  }
  return from_floats(info.Env(), out);
}

/// statistics(image, planes, side, scalar)
Napi::Value statistics_js(const Napi::CallbackInfo& info) {
  Statistics statistics{};
  alpha_statistics(to_image(info[0]), statistics);
  (info[3].ToBoolean().Value() ? colour_statistics_scalar : colour_statistics)(
      to_floats(info[1]), info[2].ToNumber().Int32Value(), statistics);
  return from_floats(info.Env(), {statistics.begin(), statistics.end()});
}

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("poolMaps", Napi::Function::New(env, pool_maps_js));
  exports.Set("statistics", Napi::Function::New(env, statistics_js));
});

}  // namespace

}  // namespace cutout::test
