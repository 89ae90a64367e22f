#pragma once

#include <napi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/image_view.h"

/// The kernel tests' image object: { data: Uint8Array, width, height, stride }.
namespace cutout::test {

inline ImageView to_image(const Napi::Value& value) {
  const auto object = value.As<Napi::Object>();
  auto data = object.Get("data").As<Napi::Uint8Array>();
  const auto number = [&](const char* name) { return object.Get(name).ToNumber().Int32Value(); };
  const ImageView view{data.Data(), number("width"), number("height"), number("stride")};
  const std::ptrdiff_t needed =
      static_cast<std::ptrdiff_t>(view.height - 1) * view.stride + view.width * 4;
  if (view.empty() || view.stride < view.width * 4 ||
      static_cast<std::ptrdiff_t>(data.ByteLength()) < needed) {
    throw Napi::RangeError::New(value.Env(), "image does not fit its data");
  }
  return view;
}

inline Box to_box(const Napi::Value& value) {
  const auto object = value.As<Napi::Object>();
  const auto number = [&](const char* name) { return object.Get(name).ToNumber().Int32Value(); };
  return {number("left"), number("top"), number("width"), number("height")};
}

inline Napi::Object from_box(Napi::Env env, const Box& box) {
  auto object = Napi::Object::New(env);
  object.Set("left", box.left);
  object.Set("top", box.top);
  object.Set("width", box.width);
  object.Set("height", box.height);
  return object;
}

inline Napi::Float32Array from_floats(Napi::Env env, const std::vector<float>& values) {
  auto array = Napi::Float32Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

inline std::span<const float> to_floats(const Napi::Value& value) {
  const auto array = value.As<Napi::Float32Array>();
  return {array.Data(), array.ElementLength()};
}

}  // namespace cutout::test
