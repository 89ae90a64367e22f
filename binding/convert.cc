#include "convert.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace cutout::binding {

namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;
constexpr int kMaxSide = 65535;
/// Byte offsets of a picture fit into 31 bits.
constexpr std::int64_t kMaxPixels = (std::int64_t{1} << 29) - 1;
constexpr int kMaxMilliseconds = std::numeric_limits<std::int32_t>::max();
constexpr int kMaxThreads = 1024;

std::string shown(const Napi::Value& value) {
  if (value.IsString()) return "'" + value.As<Napi::String>().Utf8Value() + "'";
  if (value.IsObject()) return "an object";
  if (value.IsSymbol()) return "a symbol";
  return value.ToString().Utf8Value();
}

[[noreturn]] void wrong_type(const Napi::Value& value, const std::string& expected,
                             const std::string& name) {
  throw Napi::TypeError::New(
      value.Env(), "Expected " + expected + " for " + name + " but received " + shown(value) + ".");
}

[[noreturn]] void wrong_value(const Napi::Value& value, const std::string& expected,
                              const std::string& name) {
  throw Napi::RangeError::New(
      value.Env(), "Expected " + expected + " for " + name + " but received " + shown(value) + ".");
}

Napi::Object object(const Napi::Value& value, const char* name) {
  if (!value.IsObject()) wrong_type(value, "an object", name);
  return value.As<Napi::Object>();
}

double number(const Napi::Value& value, const char* name) {
  if (!value.IsNumber()) wrong_type(value, "a number", name);
  return value.As<Napi::Number>().DoubleValue();
}

std::int64_t integer(const Napi::Value& value, const char* name, double low, double high) {
  const double given = number(value, name);
  if (!(given >= low && given <= high) || given != std::floor(given)) {
    wrong_value(value,
                "an integer from " + std::to_string(static_cast<std::int64_t>(low)) + " to " +
                    std::to_string(static_cast<std::int64_t>(high)),
                name);
  }
  return static_cast<std::int64_t>(given);
}

int integer(const Napi::Object& from, const char* name, int low, int high) {
  return static_cast<int>(integer(from.Get(name), name, low, high));
}

std::string text(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsString()) wrong_type(value, "a string", name);
  const std::string given = value.As<Napi::String>().Utf8Value();
  if (given.empty()) wrong_value(value, "a string that is not empty", name);
  return given;
}

template <typename T>
T choice(const Napi::Object& from, const char* name,
         std::initializer_list<std::pair<const char*, T>> choices) {
  const Napi::Value value = from.Get(name);
  std::string expected = "one of";
  for (const auto& [word, result] : choices) {
    if (value.IsString() && value.As<Napi::String>().Utf8Value() == word) return result;
    expected += std::string(" '") + word + "'";
  }
  if (!value.IsString()) wrong_type(value, expected, name);
  wrong_value(value, expected, name);
}

std::array<float, 3> triple(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsArray() || value.As<Napi::Array>().Length() != 3) {
    wrong_type(value, "an array of three numbers", name);
  }
  std::array<float, 3> result{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Napi::Value element = value.As<Napi::Array>().Get(i);
    result[i] = static_cast<float>(number(element, name));
    if (!std::isfinite(result[i])) wrong_value(element, "a finite number", name);
  }
  return result;
}

Engine::Deadline deadline(const Napi::Object& from) {
  const Napi::Value value = from.Get("deadlineMs");
  if (value.IsUndefined()) return {};
  const double given = number(value, "deadlineMs");
  if (!(given >= 0 && given <= kMaxMilliseconds)) {
    wrong_value(value, "a number from 0 to " + std::to_string(kMaxMilliseconds), "deadlineMs");
  }
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double, std::milli>(given));
}

Napi::Object from_box(Napi::Env env, const Box& box) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("left", box.left);
  result.Set("top", box.top);
  result.Set("width", box.width);
  result.Set("height", box.height);
  return result;
}

Napi::Array from_strings(Napi::Env env, const std::vector<std::string>& strings) {
  Napi::Array result = Napi::Array::New(env, strings.size());
  for (std::uint32_t i = 0; i < strings.size(); ++i) result.Set(i, strings[i]);
  return result;
}

}  // namespace

EngineOptions to_engine_options(const Napi::Value& value) {
  const Napi::Object from = object(value, "options");
  EngineOptions options;
  options.runtime_path = text(from, "runtimePath");
  options.provider = choice<ort::Provider>(from, "provider",
                                           {{"cpu", ort::Provider::kCpu},
                                            {"cuda", ort::Provider::kCuda},
                                            {"tensorrt", ort::Provider::kTensorRt}});
  options.device_id = integer(from, "deviceId", 0, 1023);
  options.workers = integer(from, "workers", 1, kMaxThreads);
  options.intra_op_threads = integer(from, "intraOpThreads", 1, kMaxThreads);
  options.pixel_threads = integer(from, "pixelThreads", 1, kMaxThreads);
  options.queue_limit = integer(from, "queueLimit", 0, 1'000'000);
  return options;
}

NetworkSpec to_network_spec(const Napi::Value& value) {
  const Napi::Object from = object(value, "spec");
  NetworkSpec spec;
  spec.name = text(from, "name");
  spec.path = text(from, "path");
  spec.input.width = integer(from, "width", 1, 8192);
  spec.input.height = integer(from, "height", 1, 8192);
  spec.input.mean = triple(from, "mean");
  spec.input.std = triple(from, "std");
  if (std::ranges::any_of(spec.input.std, [](float part) { return part <= 0; })) {
    wrong_value(from.Get("std"), "numbers above 0", "std");
  }
  spec.output = choice<NetworkOutput>(
      from, "output",
      {{"probability", NetworkOutput::kProbability}, {"logit", NetworkOutput::kLogit}});
  return spec;
}

Pixels to_pixels(const Napi::Value& value) {
  const Napi::Object from = object(value, "pixels");
  const int width = integer(from, "width", 1, kMaxSide);
  const int height = integer(from, "height", 1, kMaxSide);
  const std::int64_t pixels = static_cast<std::int64_t>(width) * height;
  if (pixels > kMaxPixels) {
    wrong_value(Napi::Number::New(value.Env(), static_cast<double>(pixels)),
                "at most " + std::to_string(kMaxPixels), "width * height");
  }
  const Napi::Value data = from.Get("data");
  if (!data.IsTypedArray() || data.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
    wrong_type(data, "a Uint8Array", "data");
  }
  const Napi::Uint8Array bytes = data.As<Napi::Uint8Array>();
  if (static_cast<std::int64_t>(bytes.ByteLength()) != pixels * 4) {
    wrong_value(Napi::Number::New(value.Env(), static_cast<double>(bytes.ByteLength())),
                std::to_string(pixels * 4) + " (width * height * 4)", "data.length");
  }
  return {bytes, {const_cast<std::uint8_t*>(bytes.Data()), width, height, 4, width * 4L}};
}

MatteCall to_matte_call(const Napi::Value& value, const ImageView& pixels) {
  const Napi::Object from = object(value, "plan");
  MatteCall call;
  call.network = text(from, "network");
  call.plan.width = integer(from, "width", 1, pixels.width);
  call.plan.height = integer(from, "height", 1, pixels.height);
  call.plan.hidden = choice<HiddenColour>(
      from, "hiddenColour", {{"clear", HiddenColour::kClear}, {"keep", HiddenColour::kKeep}});
  call.plan.roi = {0, 0, call.plan.width, call.plan.height};
  const Napi::Value roi = from.Get("roi");
  if (!roi.IsUndefined()) {
    const Napi::Object box = object(roi, "roi");
    call.plan.roi.left = integer(box, "left", 0, call.plan.width - 1);
    call.plan.roi.top = integer(box, "top", 0, call.plan.height - 1);
    call.plan.roi.width = integer(box, "width", 1, call.plan.width - call.plan.roi.left);
    call.plan.roi.height = integer(box, "height", 1, call.plan.height - call.plan.roi.top);
  }
  call.deadline = deadline(from);
  return call;
}

PngCall to_png_call(const Napi::Value& value, const ImageView& pixels) {
  const Napi::Object from = object(value, "options");
  PngCall call;
  call.job.pixels = pixels;
  call.job.alpha_only = choice<bool>(from, "channels", {{"rgba", false}, {"alpha", true}});
  call.job.effort = integer(from, "effort", 1, 9);
  const Napi::Value icc = from.Get("icc");
  if (!icc.IsUndefined()) {
    if (!icc.IsTypedArray() || icc.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
      wrong_type(icc, "a Uint8Array", "icc");
    }
    // A few kilobytes: copied, so that only `pixels` is borrowed.
    const Napi::Uint8Array bytes = icc.As<Napi::Uint8Array>();
    call.job.icc.assign(bytes.Data(), bytes.Data() + bytes.ByteLength());
  }
  const Napi::Value density = from.Get("pixelsPerMetre");
  if (!density.IsUndefined()) {
    if (!density.IsArray() || density.As<Napi::Array>().Length() != 2) {
      wrong_type(density, "an array of two numbers", "pixelsPerMetre");
    }
    std::array<std::uint32_t, 2> both{};
    for (std::uint32_t i = 0; i < 2; ++i) {
      both[i] = static_cast<std::uint32_t>(
          integer(density.As<Napi::Array>().Get(i), "pixelsPerMetre", 1, 2147483647.0));
    }
    call.job.pixels_per_metre = both;
  }
  call.deadline = deadline(from);
  return call;
}

std::uint64_t to_id(const Napi::Value& value) {
  return static_cast<std::uint64_t>(integer(value, "id", 0, kMaxSafeInteger));
}

std::chrono::milliseconds to_grace(const Napi::Value& value) {
  return std::chrono::milliseconds(integer(value, "graceMs", 0, kMaxMilliseconds));
}

Napi::Value from_network_info(Napi::Env env, const std::string& name, const NetworkInfo& info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("name", name);
  result.Set("inputs", from_strings(env, info.inputs));
  result.Set("outputs", from_strings(env, info.outputs));
  result.Set("loadMs", info.load_ms);
  result.Set("warmUpMs", info.warm_up_ms);
  return result;
}

Napi::Value from_matte_result(Napi::Env env, const MatteResult& result) {
  Napi::Object to = Napi::Object::New(env);
  to.Set("width", result.width);
  to.Set("height", result.height);
  to.Set("box", from_box(env, result.summary.box));
  to.Set("foregroundPixels", static_cast<double>(result.summary.foreground_pixels));
  to.Set("opaque", result.summary.opaque);
  to.Set("queueMs", result.queue_ms);
  to.Set("prepareMs", result.prepare_ms);
  to.Set("inferMs", result.infer_ms);
  to.Set("matteMs", result.matte_ms);
  return to;
}

Napi::Value from_stats(Napi::Env env, const SchedulerStats& stats) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("queued", static_cast<double>(stats.queued));
  result.Set("running", static_cast<double>(stats.running));
  result.Set("done", static_cast<double>(stats.done));
  result.Set("failed", static_cast<double>(stats.failed));
  result.Set("cancelled", static_cast<double>(stats.cancelled));
  return result;
}

Napi::Value from_bytes(Napi::Env env, std::vector<std::uint8_t> bytes) {
  using Bytes = std::vector<std::uint8_t>;
  auto owned = std::make_unique<Bytes>(std::move(bytes));
  std::uint8_t* const data = owned->data();
  const std::size_t size = owned->size();
  const Napi::Value buffer = Napi::Buffer<std::uint8_t>::NewOrCopy(
      env, data, size,
      [](Napi::BasicEnv, std::uint8_t*, Bytes* hint) { const std::unique_ptr<Bytes> freed(hint); },
      owned.get());
  static_cast<void>(owned.release());
  return buffer;
}

}  // namespace cutout::binding
