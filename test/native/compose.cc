#include "pipeline/compose.h"

#include "image/shadow.h"
#include "images.h"
#include "registry.h"
#include "scalar/image.h"

namespace cutout::test {

namespace {

DropShadow to_shadow(const Napi::Value& value) {
  const auto object = value.As<Napi::Object>();
  const auto whole = [&](const char* name) { return object.Get(name).ToNumber().Int32Value(); };
  return {object.Get("opacity").ToNumber().FloatValue(),
          object.Get("sigma").ToNumber().FloatValue(), whole("offsetX"), whole("offsetY"),
          whole("fade")};
}

/// Fields as in src/engine/types.ts.
ComposePlan to_plan(const Napi::Value& value) {
  const auto object = value.As<Napi::Object>();
  ComposePlan plan;
  plan.width = object.Get("width").ToNumber().Int32Value();
  plan.height = object.Get("height").ToNumber().Int32Value();
  plan.source = to_box(object.Get("source"));
  plan.target = to_box(object.Get("target"));
  if (const Napi::Value colour = object.Get("colour"); !colour.IsUndefined()) {
    for (std::uint32_t c = 0; c < 4; ++c) {
      plan.colour[c] =
          static_cast<std::uint8_t>(colour.As<Napi::Array>().Get(c).ToNumber().Uint32Value());
    }
  }
  if (const Napi::Value background = object.Get("background"); !background.IsUndefined()) {
    plan.background = to_image(background);
  }
  if (const Napi::Value shadow = object.Get("shadow"); !shadow.IsUndefined()) {
    plan.shadow = to_shadow(shadow);
  }
  return plan;
}

/// composeCanvas(buffer, width, plan, threads): { box, opaque }; changes the buffer.
Napi::Value compose_js(const Napi::CallbackInfo& info) {
  auto buffer = info[0].As<Napi::Uint8Array>();
  ThreadPool pool(info[3].ToNumber().Int32Value());
  const ComposeSummary summary = compose({buffer.Data(), buffer.ByteLength()},
                                         info[1].ToNumber().Int32Value(), to_plan(info[2]), pool);
  auto result = Napi::Object::New(info.Env());
  result.Set("box", from_box(info.Env(), summary.box));
  result.Set("opaque", summary.opaque);
  return result;
}

/// composeScalar(canvas image, subject box, plan): changes the canvas, whose image has been
/// placed.
Napi::Value compose_scalar_js(const Napi::CallbackInfo& info) {
  compose_scalar(to_image(info[0]), to_box(info[1]), to_plan(info[2]));
  return info.Env().Undefined();
}

/// shadow(image, subject box, shadow, threads): strengths of the whole canvas; threads -1: scalar.
Napi::Value shadow_js(const Napi::CallbackInfo& info) {
  const ImageView canvas = to_image(info[0]);
  const Box subject = to_box(info[1]);
  const DropShadow shadow = to_shadow(info[2]);
  const int threads = info[3].ToNumber().Int32Value();
  if (threads < 0) return from_floats(info.Env(), shadow_scalar(canvas, subject, shadow));
  ThreadPool pool(threads);
  const ShadowPlane plane(canvas, subject, shadow, pool);
  const auto width = static_cast<std::size_t>(canvas.width);
  std::vector<float> out(width * static_cast<std::size_t>(canvas.height), 0.0F);
  for (int y = plane.box().top; y < plane.box().top + plane.box().height; ++y) {
    plane.row(y, out.data() + static_cast<std::size_t>(y) * width + plane.box().left);
  }
  return from_floats(info.Env(), out);
}

Napi::Value shadow_extent_js(const Napi::CallbackInfo& info) {
  return from_box(info.Env(), shadow_extent(to_box(info[0]), to_shadow(info[1])));
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("composeCanvas", Napi::Function::New(env, compose_js));
  exports.Set("composeScalar", Napi::Function::New(env, compose_scalar_js));
  exports.Set("shadow", Napi::Function::New(env, shadow_js));
  exports.Set("shadowExtent", Napi::Function::New(env, shadow_extent_js));
});

}  // namespace cutout::test
