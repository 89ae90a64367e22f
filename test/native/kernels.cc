#include "image/enlarge.h"
#include "image/network_input.h"
#include "image/resample.h"
#include "images.h"
#include "registry.h"
#include "scalar/image.h"

namespace cutout::test {

namespace {

NetworkInput to_network_input(const Napi::Value& value) {
  const auto object = value.As<Napi::Object>();
  NetworkInput spec{object.Get("width").ToNumber().Int32Value(),
                    object.Get("height").ToNumber().Int32Value(),
                    {},
                    {}};
  const auto mean = object.Get("mean").As<Napi::Array>();
  const auto std = object.Get("std").As<Napi::Array>();
  for (std::uint32_t c = 0; c < 3; ++c) {
    spec.mean[c] = mean.Get(c).ToNumber().FloatValue();
    spec.std[c] = std.Get(c).ToNumber().FloatValue();
  }
  return spec;
}

/// fillNetworkInput(image, spec, threads), or threads -1 for the scalar version.
Napi::Value fill_network_input_js(const Napi::CallbackInfo& info) {
  const ImageView image = to_image(info[0]);
  const NetworkInput spec = to_network_input(info[1]);
  const int threads = info[2].ToNumber().Int32Value();
  std::vector<float> out(3 * static_cast<std::size_t>(spec.width) *
                         static_cast<std::size_t>(spec.height));
  if (threads < 0) {
    fill_network_input_scalar(image, spec, out.data());
  } else {
    ThreadPool pool(threads);
    fill_network_input(image, spec, out.data(), pool);
  }
  return from_floats(info.Env(), out);
}

/// reduceInPlace(image, width, height, threads)
void reduce_in_place_js(const Napi::CallbackInfo& info) {
  ThreadPool pool(info[3].ToNumber().Int32Value());
  reduce_in_place(to_image(info[0]), info[1].ToNumber().Int32Value(),
                  info[2].ToNumber().Int32Value(), pool);
}

/// reduceScalar(image, width, height): the packed result.
Napi::Value reduce_scalar_js(const Napi::CallbackInfo& info) {
  const int width = info[1].ToNumber().Int32Value();
  const int height = info[2].ToNumber().Int32Value();
  auto out = Napi::Uint8Array::New(
      info.Env(), static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4);
  reduce_scalar(to_image(info[0]), width, height, out.Data());
  return out;
}

/// enlargeInPlace(buffer, width, height, toWidth, toHeight, threads, offset, stride). The image
/// starts `offset` bytes into the buffer.
void enlarge_in_place_js(const Napi::CallbackInfo& info) {
  auto buffer = info[0].As<Napi::Uint8Array>();
  const auto whole = [&](std::size_t i) { return info[i].ToNumber().Int32Value(); };
  ThreadPool pool(whole(5));
  enlarge_in_place({buffer.Data(), buffer.ByteLength()},
                   {buffer.Data() + whole(6), whole(1), whole(2), whole(7)}, whole(3), whole(4),
                   pool);
}

/// enlargeScalar(image, width, height): the packed result.
Napi::Value enlarge_scalar_js(const Napi::CallbackInfo& info) {
  const int width = info[1].ToNumber().Int32Value();
  const int height = info[2].ToNumber().Int32Value();
  auto out = Napi::Uint8Array::New(
      info.Env(), static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4);
  enlarge_scalar(to_image(info[0]), width, height, out.Data());
  return out;
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("fillNetworkInput", Napi::Function::New(env, fill_network_input_js));
  exports.Set("reduceInPlace", Napi::Function::New(env, reduce_in_place_js));
  exports.Set("reduceScalar", Napi::Function::New(env, reduce_scalar_js));
  exports.Set("enlargeInPlace", Napi::Function::New(env, enlarge_in_place_js));
  exports.Set("enlargeScalar", Napi::Function::New(env, enlarge_scalar_js));
});

}  // namespace cutout::test
