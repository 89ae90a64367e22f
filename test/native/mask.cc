#include <vector>

#include "images.h"
#include "matte/mask_constraint.h"
#include "registry.h"
#include "scalar/matte.h"

namespace cutout::test {

namespace {

SubjectMask to_mask(const Napi::Value& value) {
  const auto from = value.As<Napi::Object>();
  const auto data = from.Get("data").As<Napi::Uint8Array>();
  return {{data.Data(), data.ElementLength()},
          from.Get("width").ToNumber().Int32Value(),
          from.Get("height").ToNumber().Int32Value()};
}

/// constrain(p, width, mask, view, { width, height }, threads), threads -1 for the scalar version:
/// changes p.
Napi::Value constrain_js(const Napi::CallbackInfo& info) {
  auto p = info[0].As<Napi::Float32Array>();
  const std::span<float> values(p.Data(), p.ElementLength());
  const int width = info[1].ToNumber().Int32Value();
  const int height = static_cast<int>(values.size()) / width;
  const SubjectMask mask = to_mask(info[2]);
  const Box view = to_box(info[3]);
  const auto image = info[4].As<Napi::Object>();
  const int image_width = image.Get("width").ToNumber().Int32Value();
  const int image_height = image.Get("height").ToNumber().Int32Value();
  const int threads = info[5].ToNumber().Int32Value();
  if (threads < 0) {
    constrain_scalar(values, mask, view, image_width, image_height, width, height);
  } else {
    ThreadPool pool(threads);
    constrain(values, resize_mask(mask, view, image_width, image_height, width, height, pool),
              pool);
  }
  return info.Env().Undefined();
}

/// restoreMarked(p, width, constrained, mask, threads): changes p, which covers the whole image.
Napi::Value restore_marked_js(const Napi::CallbackInfo& info) {
  auto p = info[0].As<Napi::Float32Array>();
  const std::span<float> values(p.Data(), p.ElementLength());
  const int width = info[1].ToNumber().Int32Value();
  const int height = static_cast<int>(values.size()) / width;
  ThreadPool pool(info[4].ToNumber().Int32Value());
  const Box whole{0, 0, width, height};
  restore_marked(values, to_floats(info[2]),
                 resize_mask(to_mask(info[3]), whole, width, height, width, height, pool), pool);
  return info.Env().Undefined();
}

/// maskView(mask, width, height): box.
Napi::Value mask_view_js(const Napi::CallbackInfo& info) {
  return from_box(info.Env(), mask_view(to_mask(info[0]), info[1].ToNumber().Int32Value(),
                                        info[2].ToNumber().Int32Value()));
}

/// sharedView(first, mask, width, height, grid): box.
Napi::Value shared_view_js(const Napi::CallbackInfo& info) {
  return from_box(info.Env(),
                  shared_view(to_mask(info[0]), to_mask(info[1]), info[2].ToNumber().Int32Value(),
                              info[3].ToNumber().Int32Value(), info[4].ToNumber().Int32Value()));
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("constrain", Napi::Function::New(env, constrain_js));
  exports.Set("restoreMarked", Napi::Function::New(env, restore_marked_js));
  exports.Set("maskView", Napi::Function::New(env, mask_view_js));
  exports.Set("sharedView", Napi::Function::New(env, shared_view_js));
});

}  // namespace cutout::test
