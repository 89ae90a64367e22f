#include "classify/features.h"
#include "classify/pool.h"
#include "classify/statistics.h"
#include "images.h"
#include "registry.h"

namespace cutout::test {

namespace {

/// reduceMap(map, width, height, outWidth, outHeight, scalar)
Napi::Value reduce_map_js(const Napi::CallbackInfo& info) {
  const auto whole = [&](std::size_t i) { return info[i].ToNumber().Int32Value(); };
  std::vector<float> out(static_cast<std::size_t>(whole(3)) * static_cast<std::size_t>(whole(4)));
  (info[5].ToBoolean().Value() ? reduce_map_scalar : reduce_map)(to_floats(info[0]), whole(1),
                                                                 whole(2), whole(3), whole(4), out);
  return from_floats(info.Env(), out);
}

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
  exports.Set("reduceMap", Napi::Function::New(env, reduce_map_js));
  exports.Set("poolMaps", Napi::Function::New(env, pool_maps_js));
  exports.Set("statistics", Napi::Function::New(env, statistics_js));
});

}  // namespace

}  // namespace cutout::test
