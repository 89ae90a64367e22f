#include "matte/clean.h"

#include <vector>

#include "images.h"
#include "matte/decided.h"
#include "matte/regions.h"
#include "registry.h"

namespace cutout::test {

namespace {

/// cleanAlpha(p, width, area, threads), threads -1 for the scalar version: changes p.
Napi::Value clean_alpha_js(const Napi::CallbackInfo& info) {
  auto p = info[0].As<Napi::Float32Array>();
  const std::span<float> values(p.Data(), p.ElementLength());
  const int width = info[1].ToNumber().Int32Value();
  const Box area = to_box(info[2]);
  const int threads = info[3].ToNumber().Int32Value();
  CleanSummary summary;
  if (threads < 0) {
    summary = clean_alpha_scalar(values, width, area);
  } else {
    ThreadPool pool(threads);
    summary = clean_alpha(values, width, area, pool);
  }
  auto result = Napi::Object::New(info.Env());
  result.Set("islands", summary.islands);
  result.Set("dents", summary.dents);
  return result;
}

/// findRegions(p, width, area, least, most, neighbours, threads): [{ area, sure, low, high, box }].
Napi::Value find_regions_js(const Napi::CallbackInfo& info) {
  const auto p = to_floats(info[0]);
  const int width = info[1].ToNumber().Int32Value();
  const Box area = to_box(info[2]);
  const float least = info[3].ToNumber().FloatValue();
  const float most = info[4].ToNumber().FloatValue();
  const Neighbours neighbours =
      info[5].ToNumber().Int32Value() == 8 ? Neighbours::kEight : Neighbours::kFour;
  const int threads = info[6].ToNumber().Int32Value();
  Regions found;
  if (threads < 0) {
    found = find_regions_scalar(p, width, area, least, most, neighbours);
  } else {
    ThreadPool pool(threads);
    found = find_regions(p, width, area, least, most, neighbours, pool);
  }
  auto regions = Napi::Array::New(info.Env(), found.regions.size());
  for (std::uint32_t i = 0; i < found.regions.size(); ++i) {
    const Region& region = found.regions[i];
    auto entry = Napi::Object::New(info.Env());
    entry.Set("area", region.area);
    entry.Set("sure", region.sure);
    entry.Set("low", region.low);
    entry.Set("high", region.high);
    entry.Set("box", from_box(info.Env(), region.box));
    regions.Set(i, entry);
  }
  auto runs = Napi::Array::New(info.Env(), found.runs.size());
  for (std::uint32_t i = 0; i < found.runs.size(); ++i) {
    const Run& run = found.runs[i];
    auto entry = Napi::Array::New(info.Env(), 4);
    entry.Set(0U, run.y);
    entry.Set(1U, run.begin);
    entry.Set(2U, run.end);
    entry.Set(3U, run.region);
    runs.Set(i, entry);
  }
  auto result = Napi::Object::New(info.Env());
  result.Set("regions", regions);
  result.Set("runs", runs);
  return result;
}

/// isDecided(p, width, area, threads), threads -1 for the scalar version.
Napi::Value is_decided_js(const Napi::CallbackInfo& info) {
  const auto p = to_floats(info[0]);
  const int width = info[1].ToNumber().Int32Value();
  const Box area = to_box(info[2]);
  const int threads = info[3].ToNumber().Int32Value();
  if (threads < 0) {
    return Napi::Boolean::New(info.Env(), is_decided_scalar(p, width, area));
  }
  ThreadPool pool(threads);
  return Napi::Boolean::New(info.Env(), is_decided(p, width, area, pool));
}

/// cellsOf(roi, width, height, pWidth, pHeight): box.
Napi::Value cells_of_js(const Napi::CallbackInfo& info) {
  const auto whole = [&](std::size_t i) { return info[i].ToNumber().Int32Value(); };
  return from_box(info.Env(), cells_of(to_box(info[0]), whole(1), whole(2), whole(3), whole(4)));
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("cleanAlpha", Napi::Function::New(env, clean_alpha_js));
  exports.Set("findRegions", Napi::Function::New(env, find_regions_js));
  exports.Set("isDecided", Napi::Function::New(env, is_decided_js));
  exports.Set("cellsOf", Napi::Function::New(env, cells_of_js));
});

}  // namespace cutout::test
