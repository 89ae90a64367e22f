#include "classify/features.h"
#include "classify/pool.h"
#include "classify/statistics.h"
#include "images.h"
#include "registry.h"

namespace cutout::test {

namespace {

/// poolMaps(maps, weights, scalar): two numbers a map.
Napi::Value pool_maps_js(const Napi::CallbackInfo& info) {
  std::vector<float> out;
  const auto pool = info[2].ToBoolean().Value() ? pool_maps_scalar : pool_maps;
  for (const Pooled& pooled : pool(to_floats(info[0]), to_floats(info[1]))) {
    out.insert(out.end(), {pooled.mean, pooled.max});
  }
  return from_floats(info.Env(), out);
}

/// statistics(image, planes, side, scalar)
Napi::Value statistics_js(const Napi::CallbackInfo& info) {
  Statistics statistics{};
  alpha_statistics(to_image(info[0]), statistics);
  (info[3].ToBoolean().Value() ? border_statistics_scalar : border_statistics)(
      make_thumbnail(to_floats(info[1]), info[2].ToNumber().Int32Value()), statistics);
  return from_floats(info.Env(), {statistics.begin(), statistics.end()});
}

/// regions(planes, side, weights, scalar): inside, then outside.
Napi::Value regions_js(const Napi::CallbackInfo& info) {
  const Regions regions =
      (info[3].ToBoolean().Value() ? region_statistics_scalar : region_statistics)(
          make_thumbnail(to_floats(info[0]), info[1].ToNumber().Int32Value()), to_floats(info[2]));
  std::vector<float> out(regions.inside.begin(), regions.inside.end());
  out.insert(out.end(), regions.outside.begin(), regions.outside.end());
  return from_floats(info.Env(), out);
}

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("poolMaps", Napi::Function::New(env, pool_maps_js));
  exports.Set("statistics", Napi::Function::New(env, statistics_js));
  exports.Set("regions", Napi::Function::New(env, regions_js));
});

}  // namespace

}  // namespace cutout::test
