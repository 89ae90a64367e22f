#include "classify/features.h"
#include "classify/statistics.h"
#include "images.h"
#include "registry.h"

namespace cutout::test {

namespace {

/// poolMaps(maps, weights, threads): two numbers per map.
Napi::Value pool_maps_js(const Napi::CallbackInfo& info) {
  std::vector<float> out;
  const std::span<const float> maps = to_floats(info[0]);
  const std::span<const float> weights = to_floats(info[1]);
  ThreadPool pool(info[2].ToNumber().Int32Value());
  for (const Pooled& pooled : pool_maps(maps, weights, pool)) {
    out.insert(out.end(), {pooled.mean, pooled.max});
  }
  return from_floats(info.Env(), out);
}

/// statistics(image, planes, side)
Napi::Value statistics_js(const Napi::CallbackInfo& info) {
  Statistics statistics{};
  alpha_statistics(to_image(info[0]), statistics);
  border_statistics(make_thumbnail(to_floats(info[1]), info[2].ToNumber().Int32Value()),
                    statistics);
  return from_floats(info.Env(), {statistics.begin(), statistics.end()});
}

/// regions(planes, side, weights, threads): inside, then outside.
Napi::Value regions_js(const Napi::CallbackInfo& info) {
  const Thumbnail thumbnail = make_thumbnail(to_floats(info[0]), info[1].ToNumber().Int32Value());
  const std::span<const float> weights = to_floats(info[2]);
  ThreadPool pool(info[3].ToNumber().Int32Value());
  const Regions regions = region_statistics(thumbnail, weights, pool);
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
