#include <vector>

#include "image/network_input.h"
#include "images.h"
#include "matte/component_filter.h"
#include "matte/connected_components.h"
#include "matte/uncertainty.h"
#include "pipeline/second_network.h"
#include "registry.h"
#include "scalar/matte.h"

namespace cutout::test {

namespace {

/// filterComponents(p, width, area, threads), threads -1 for the scalar version: changes p.
Napi::Value filter_components_js(const Napi::CallbackInfo& info) {
  auto p = info[0].As<Napi::Float32Array>();
  const std::span<float> values(p.Data(), p.ElementLength());
  const int width = info[1].ToNumber().Int32Value();
  const Box area = to_box(info[2]);
  const int threads = info[3].ToNumber().Int32Value();
  ComponentSummary summary;
  if (threads < 0) {
    summary = filter_components_scalar(values, width, area);
  } else {
    ThreadPool pool(threads);
    summary = filter_components(values, width, area, pool);
  }
  auto result = Napi::Object::New(info.Env());
  result.Set("removed", summary.removed);
  result.Set("filled", summary.filled);
  return result;
}

/// findComponents(p, width, area, least, most, neighbours, threads): [{ area, foreground, low,
/// high }].
Napi::Value find_components_js(const Napi::CallbackInfo& info) {
  const auto p = to_floats(info[0]);
  const int width = info[1].ToNumber().Int32Value();
  const Box area = to_box(info[2]);
  const float least = info[3].ToNumber().FloatValue();
  const float most = info[4].ToNumber().FloatValue();
  const Connectivity connectivity =
      info[5].ToNumber().Int32Value() == 8 ? Connectivity::kEight : Connectivity::kFour;
  const int threads = info[6].ToNumber().Int32Value();
  Components found;
  if (threads < 0) {
    found = find_components_scalar(p, width, area, least, most, connectivity);
  } else {
    ThreadPool pool(threads);
    found = find_components(p, width, area, least, most, connectivity, pool);
  }
  auto components = Napi::Array::New(info.Env(), found.components.size());
  for (std::uint32_t i = 0; i < found.components.size(); ++i) {
    const Component& component = found.components[i];
    auto entry = Napi::Object::New(info.Env());
    entry.Set("area", component.area);
    entry.Set("foreground", component.foreground);
    entry.Set("low", component.low);
    entry.Set("high", component.high);
    components.Set(i, entry);
  }
  auto runs = Napi::Array::New(info.Env(), found.runs.size());
  for (std::uint32_t i = 0; i < found.runs.size(); ++i) {
    const Run& run = found.runs[i];
    auto entry = Napi::Array::New(info.Env(), 4);
    entry.Set(0U, run.y);
    entry.Set(1U, run.begin);
    entry.Set(2U, run.end);
    entry.Set(3U, run.component);
    runs.Set(i, entry);
  }
  auto result = Napi::Object::New(info.Env());
  result.Set("components", components);
  result.Set("runs", runs);
  return result;
}

/// uncertainty(p, width, area, threads): { whole, patches, secondLook }.
Napi::Value uncertainty_js(const Napi::CallbackInfo& info) {
  const auto p = to_floats(info[0]);
  const int width = info[1].ToNumber().Int32Value();
  const Box area = to_box(info[2]);
  ThreadPool pool(info[3].ToNumber().Int32Value());
  const Uncertainty found = uncertainty(p, width, area, pool);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("whole", found.whole);
  result.Set("patches", found.patches);
  result.Set("secondLook", needs_second_look(found));
  return result;
}

/// isSurer(second, first), each { whole, patches }.
Napi::Value is_surer_js(const Napi::CallbackInfo& info) {
  const auto measured = [&](std::size_t i) {
    const auto from = info[i].As<Napi::Object>();
    return Uncertainty{from.Get("whole").ToNumber(), from.Get("patches").ToNumber()};
  };
  return Napi::Boolean::New(info.Env(), is_surer(measured(0), measured(1)));
}

/// hasFlatBorder(image)
Napi::Value has_flat_border_js(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), has_flat_border(to_image(info[0])));
}

/// restoreColouredHoles(p, width, image, threads): changes p.
Napi::Value restore_coloured_holes_js(const Napi::CallbackInfo& info) {
  auto p = info[0].As<Napi::Float32Array>();
  const int width = info[1].ToNumber().Int32Value();
  const int height = static_cast<int>(p.ElementLength()) / width;
  ThreadPool pool(info[3].ToNumber().Int32Value());
  std::vector<float> planes(3 * p.ElementLength());
  fill_network_input(to_image(info[2]), {width, height, {0, 0, 0}, {1, 1, 1}}, planes.data(), pool);
  restore_coloured_holes({p.Data(), p.ElementLength()}, width, planes, pool);
  return info.Env().Undefined();
}

/// networkArea(roi, width, height, pWidth, pHeight): box.
Napi::Value network_area_js(const Napi::CallbackInfo& info) {
  const auto whole = [&](std::size_t i) { return info[i].ToNumber().Int32Value(); };
  return from_box(info.Env(),
                  network_area(to_box(info[0]), whole(1), whole(2), whole(3), whole(4)));
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("filterComponents", Napi::Function::New(env, filter_components_js));
  exports.Set("findComponents", Napi::Function::New(env, find_components_js));
  exports.Set("uncertainty", Napi::Function::New(env, uncertainty_js));
  exports.Set("isSurer", Napi::Function::New(env, is_surer_js));
  exports.Set("hasFlatBorder", Napi::Function::New(env, has_flat_border_js));
  exports.Set("restoreColouredHoles", Napi::Function::New(env, restore_coloured_holes_js));
  exports.Set("networkArea", Napi::Function::New(env, network_area_js));
});

}  // namespace cutout::test
