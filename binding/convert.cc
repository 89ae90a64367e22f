#include "convert.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace cutout::binding {

namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;
constexpr int kMaxSide = 65535;
/// So that byte offsets of an image fit into 31 bits.
constexpr std::int64_t kMaxPixels = (std::int64_t{1} << 29) - 1;
constexpr int kMaxMilliseconds = std::numeric_limits<std::int32_t>::max();
constexpr int kMaxThreads = 1024;
constexpr std::uint32_t kMaxPoints = 1024;

std::string shown(const Napi::Value& value) {
  if (value.IsString()) return std::string("'") + value.As<Napi::String>().Utf8Value() + "'";
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

float number_in(const Napi::Object& from, const char* name, double low, double high) {
  const Napi::Value value = from.Get(name);
  const double given = number(value, name);
  if (!(given >= low && given <= high)) {
    wrong_value(value,
                "a number from " + shown(Napi::Number::New(value.Env(), low)) + " to " +
                    shown(Napi::Number::New(value.Env(), high)),
                name);
  }
  return static_cast<float>(given);
}

/// A box that is not empty and lies inside width x height.
Box box_inside(const Napi::Object& from, const char* name, int width, int height) {
  const Napi::Object box = object(from.Get(name), name);
  Box result;
  result.left = integer(box, "left", 0, width - 1);
  result.top = integer(box, "top", 0, height - 1);
  result.width = integer(box, "width", 1, width - result.left);
  result.height = integer(box, "height", 1, height - result.top);
  return result;
}

bool boolean(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsBoolean()) wrong_type(value, "a boolean", name);
  return value.As<Napi::Boolean>().Value();
}

std::string text(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsString()) wrong_type(value, "a string", name);
  const std::string given = value.As<Napi::String>().Utf8Value();
  if (given.empty()) wrong_value(value, "a string that is not empty", name);
  return given;
}

std::vector<std::string> strings(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsArray()) wrong_type(value, "an array of strings", name);
  const Napi::Array array = value.As<Napi::Array>();
  std::vector<std::string> result;
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value element = array.Get(i);
    if (!element.IsString()) wrong_type(element, "a string", name);
    result.push_back(element.As<Napi::String>().Utf8Value());
  }
  return result;
}

/// Different numbers, at least one.
std::vector<int> integers(const Napi::Object& from, const char* name, int low, int high) {
  const Napi::Value value = from.Get(name);
  if (!value.IsArray()) wrong_type(value, "an array of numbers", name);
  const Napi::Array array = value.As<Napi::Array>();
  std::vector<int> result;
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value element = array.Get(i);
    const auto given = static_cast<int>(integer(element, name, low, high));
    if (std::ranges::find(result, given) != result.end()) {
      wrong_value(element, "a number that is there once", name);
    }
    result.push_back(given);
  }
  if (result.empty()) wrong_value(value, "at least one number", name);
  return result;
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

template <typename T>
Napi::TypedArrayOf<T> typed_array(const Napi::Object& from, const char* name,
                                  napi_typedarray_type type, const char* expected) {
  const Napi::Value value = from.Get(name);
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) {
    wrong_type(value, expected, name);
  }
  return value.As<Napi::TypedArrayOf<T>>();
}

Napi::Float32Array float_array(const Napi::Object& from, const char* name) {
  return typed_array<float>(from, name, napi_float32_array, "a Float32Array");
}

template <typename T>
std::vector<T> copied(const Napi::TypedArrayOf<T>& array) {
  return {array.Data(), array.Data() + array.ElementLength()};
}

std::vector<float> floats(const Napi::Object& from, const char* name) {
  return copied(float_array(from, name));
}

std::vector<std::int8_t> bytes(const Napi::Object& from, const char* name) {
  return copied(typed_array<std::int8_t>(from, name, napi_int8_array, "an Int8Array"));
}

HeadWeights to_head(const Napi::Object& from) {
  HeadWeights head;
  head.hidden = static_cast<std::size_t>(integer(from, "hidden", 0, 4096));
  head.mean = floats(from, "mean");
  head.scale = floats(from, "scale");
  head.first = bytes(from, "first");
  head.first_scale = floats(from, "firstScale");
  head.first_bias = floats(from, "firstBias");
  head.second = bytes(from, "second");
  head.second_scale = floats(from, "secondScale");
  head.second_bias = floats(from, "secondBias");
  head.temperature = number_in(from, "temperature", 0.01, 100);
  head.threshold = number_in(from, "threshold", 0, 1);
  head.inputs = head.mean.size();
  return head;
}

Napi::Object from_subject(Napi::Env env, const Subject& subject) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("type", std::string(kSubjectTypes[subject.type]));
  Napi::Array probabilities = Napi::Array::New(env, kSubjectCount);
  for (std::uint32_t i = 0; i < kSubjectCount; ++i) {
    probabilities.Set(i, static_cast<double>(subject.probabilities[i]));
  }
  result.Set("probabilities", probabilities);
  return result;
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

/// The float32 numbers in these bytes.
std::span<const float> floats_in(const Napi::Uint8Array& array, const char* name) {
  const std::uint8_t* const bytes = array.Data();
  const std::size_t length = array.ByteLength();
  if (length % sizeof(float) != 0 ||
      reinterpret_cast<std::uintptr_t>(bytes) % alignof(float) != 0) {
    wrong_value(Napi::Number::New(array.Env(), static_cast<double>(length)),
                "whole, aligned numbers of 4 bytes", std::string(name) + ".length");
  }
  return {reinterpret_cast<const float*>(bytes), length / sizeof(float)};
}

NetworkInput to_network_input(const Napi::Object& from) {
  NetworkInput input;
  input.width = integer(from, "width", 1, 8192);
  input.height = integer(from, "height", 1, 8192);
  input.mean = triple(from, "mean");
  input.std = triple(from, "std");
  if (std::ranges::any_of(input.std, [](float part) { return part <= 0; })) {
    wrong_value(from.Get("std"), "numbers above 0", "std");
  }
  return input;
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
  options.device_ids = integers(from, "deviceIds", 0, 1023);
  if (!from.Get("libraries").IsUndefined()) options.libraries = strings(from, "libraries");
  if (!from.Get("maxBatch").IsUndefined()) options.max_batch = integer(from, "maxBatch", 1, 64);
  if (!from.Get("batchDelayMs").IsUndefined()) {
    options.batch_delay_ms = integer(from, "batchDelayMs", 0, 1000);
  }
  if (!from.Get("deviceMemoryBytes").IsUndefined()) {
    options.device_memory = static_cast<std::uint64_t>(
        integer(from.Get("deviceMemoryBytes"), "deviceMemoryBytes", 0, 1e15));
  }
  options.workers = integer(from, "workers", 1, kMaxThreads);
  options.intra_op_threads = integer(from, "intraOpThreads", 1, kMaxThreads);
  options.pixel_threads = integer(from, "pixelThreads", 1, kMaxThreads);
  options.queue_limit = integer(from, "queueLimit", 0, 1'000'000);
  options.idle_release_ms = integer(from, "idleReleaseMs", 0, 86'400'000);
  return options;
}

NetworkSpec to_network_spec(const Napi::Value& value) {
  const Napi::Object from = object(value, "spec");
  NetworkSpec spec;
  spec.name = text(from, "name");
  spec.path = text(from, "path");
  if (!from.Get("saveTo").IsUndefined()) spec.save_to = text(from, "saveTo");
  if (!from.Get("operators").IsUndefined()) spec.operators = text(from, "operators");
  if (!from.Get("fp16").IsUndefined()) spec.fp16 = boolean(from, "fp16");
  if (!from.Get("engineCache").IsUndefined()) spec.engine_cache = text(from, "engineCache");
  spec.input = to_network_input(from);
  spec.output = choice<NetworkOutput>(
      from, "output",
      {{"probability", NetworkOutput::kProbability}, {"logit", NetworkOutput::kLogit}});
  if (!from.Get("trainedOn").IsUndefined()) {
    spec.trained_on = choice<TrainedOn>(
        from, "trainedOn", {{"masks", TrainedOn::kMasks}, {"mattes", TrainedOn::kMattes}});
  }
  return spec;
}

Pixels to_pixels(const Napi::Value& value, BufferLength required) {
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
  const auto length = static_cast<std::int64_t>(bytes.ByteLength());
  if (required == BufferLength::kExact ? length != pixels * 4 : length < pixels * 4) {
    std::string expected = std::to_string(pixels * 4) + " (width * height * 4)";
    if (required == BufferLength::kAtLeast) expected += " or more";
    wrong_value(Napi::Number::New(value.Env(), static_cast<double>(length)), expected,
                "data.length");
  }
  return {bytes, {const_cast<std::uint8_t*>(bytes.Data()), width, height, width * 4L}};
}

/// A mask that a plan may have; `mask` borrows what is returned.
std::optional<Napi::Uint8Array> to_mask(const Napi::Object& plan, const char* name,
                                        std::optional<SubjectMask>& to) {
  const Napi::Value value = plan.Get(name);
  if (value.IsUndefined()) return std::nullopt;
  const Napi::Object given = object(value, name);
  SubjectMask& mask = to.emplace();
  mask.width = integer(given, "width", 1, kMaxSide);
  mask.height = integer(given, "height", 1, kMaxSide);
  const Napi::Uint8Array data =
      typed_array<std::uint8_t>(given, "data", napi_uint8_array, "a Uint8Array");
  const double wanted = static_cast<double>(mask.width) * mask.height;
  if (static_cast<double>(data.ElementLength()) != wanted) {
    wrong_value(given.Get("data"), "width * height bytes", "data");
  }
  mask.values = {data.Data(), data.ElementLength()};
  return data;
}

MatteCall to_matte_call(const Napi::Value& value, const ImageView& pixels) {
  const Napi::Object from = object(value, "plan");
  MatteCall call;
  call.network = text(from, "network");
  if (!from.Get("second").IsUndefined()) call.second = text(from, "second");
  call.plan.width = integer(from, "width", 1, pixels.width);
  call.plan.height = integer(from, "height", 1, pixels.height);
  call.plan.hidden_colour = choice<HiddenColour>(
      from, "hiddenColour", {{"clear", HiddenColour::kClear}, {"keep", HiddenColour::kKeep}});
  if (!from.Get("refine").IsUndefined()) {
    call.plan.refinement =
        choice<Refinement>(from, "refine", {{"on", Refinement::kOn}, {"off", Refinement::kOff}});
  }
  call.plan.roi = {0, 0, call.plan.width, call.plan.height};
  if (!from.Get("roi").IsUndefined()) {
    call.plan.roi = box_inside(from, "roi", call.plan.width, call.plan.height);
  }
  if (const Napi::Value input = from.Get("input"); !input.IsUndefined()) {
    const Napi::Object size = object(input, "input");
    call.plan.input = {integer(size, "width", 1, 8192), integer(size, "height", 1, 8192)};
  }
  if (const Napi::Value subject = from.Get("subject"); !subject.IsUndefined()) {
    if (!subject.IsBoolean()) wrong_type(subject, "a boolean", "subject");
    call.plan.subject = subject.As<Napi::Boolean>().Value();
  }
  call.mask = to_mask(from, "mask", call.plan.mask);
  call.first_mask = to_mask(from, "firstMask", call.plan.first_mask);
  if (!from.Get("keepOutput").IsUndefined()) call.plan.keep_output = boolean(from, "keepOutput");
  if (const Napi::Value kept = from.Get("kept"); !kept.IsUndefined()) {
    const Napi::Object given = object(kept, "kept");
    KeptOutput& to = call.plan.kept.emplace();
    to.width = integer(given, "width", 1, 8192);
    to.height = integer(given, "height", 1, 8192);
    to.view = box_inside(given, "view", call.plan.width, call.plan.height);
    call.kept = typed_array<std::uint8_t>(given, "data", napi_uint8_array, "a Uint8Array");
    to.values = floats_in(*call.kept, "data");
    const double wanted = static_cast<double>(to.width) * to.height;
    if (static_cast<double>(to.values.size()) != wanted) {
      wrong_value(given.Get("width"), "the width of the data", "width");
    }
  }
  return call;
}

SubjectTypesSpec to_subject_types_spec(const Napi::Value& value) {
  const Napi::Object from = object(value, "spec");
  SubjectTypesSpec spec;
  spec.detector = to_network_spec(from.Get("detector"));
  const Napi::Value head = from.Get("head");
  if (!head.IsUndefined()) spec.head = to_head(object(head, "head"));
  return spec;
}

SelectorSpec to_selector_spec(const Napi::Value& value) {
  const Napi::Object from = object(value, "spec");
  SelectorSpec spec;
  spec.encoder = text(from, "encoder");
  spec.decoder = text(from, "decoder");
  if (!from.Get("operators").IsUndefined()) spec.operators = text(from, "operators");
  spec.input = to_network_input(from);
  return spec;
}

SelectCall to_select_call(const Napi::Value& value) {
  const Napi::Object from = object(value, "plan");
  SelectCall call;
  call.embedding = typed_array<std::uint8_t>(from, "embedding", napi_uint8_array, "a Uint8Array");
  call.job.embedding = floats_in(call.embedding, "embedding");
  const auto add = [&call](const Napi::Object& at, const char* x, const char* y, float label) {
    call.job.points.push_back({number_in(at, x, 0, 1), number_in(at, y, 0, 1), label});
  };
  const Napi::Value points = from.Get("points");
  if (!points.IsArray() || points.As<Napi::Array>().Length() > kMaxPoints) {
    wrong_type(points, "an array of at most " + std::to_string(kMaxPoints) + " points", "points");
  }
  for (std::uint32_t i = 0; i < points.As<Napi::Array>().Length(); ++i) {
    const Napi::Object point = object(points.As<Napi::Array>().Get(i), "points");
    add(point, "x", "y", boolean(point, "include") ? 1 : 0);
  }
  if (const Napi::Value given = from.Get("box"); !given.IsUndefined()) {
    const Napi::Object box = object(given, "box");
    add(box, "x1", "y1", 2);
    add(box, "x2", "y2", 3);
  } else {
    // The network was trained with this in place of a box.
    call.job.points.push_back({0, 0, -1});
  }
  return call;
}

DescribeCall to_describe_call(const Napi::Value& value, const ImageView& pixels) {
  const Napi::Object from = object(value, "plan");
  const Napi::Object matte = object(from.Get("matte"), "matte");
  DescribeCall call;
  call.job.pixels = pixels;
  call.job.matte.width = integer(matte, "width", 1, kMaxSide);
  call.job.matte.height = integer(matte, "height", 1, kMaxSide);
  call.alpha = float_array(matte, "data");
  const double wanted = static_cast<double>(call.job.matte.width) * call.job.matte.height;
  if (static_cast<double>(call.alpha.ElementLength()) != wanted) {
    wrong_value(matte.Get("data"), "width * height numbers", "data");
  }
  call.job.matte.alpha = {call.alpha.Data(), call.alpha.ElementLength()};
  return call;
}

ComposeCall to_compose_call(const Napi::Value& value, const Pixels& pixels) {
  const Napi::Object from = object(value, "plan");
  ComposeCall call;
  ComposePlan& plan = call.job.plan;
  plan.width = integer(from, "width", 1, kMaxSide);
  plan.height = integer(from, "height", 1, kMaxSide);
  const std::int64_t needed = static_cast<std::int64_t>(plan.width) * plan.height * 4;
  if (static_cast<std::int64_t>(pixels.data.ByteLength()) < needed) {
    wrong_value(Napi::Number::New(value.Env(), static_cast<double>(pixels.data.ByteLength())),
                "at least " + std::to_string(needed) + " (the canvas)", "data.length");
  }
  plan.source = box_inside(from, "source", pixels.view.width, pixels.view.height);
  plan.target = box_inside(from, "target", plan.width, plan.height);
  if (const Napi::Value colour = from.Get("colour"); !colour.IsUndefined()) {
    if (!colour.IsArray() || colour.As<Napi::Array>().Length() != plan.colour.size()) {
      wrong_type(colour, "an array of four numbers", "colour");
    }
    for (std::uint32_t i = 0; i < plan.colour.size(); ++i) {
      plan.colour[i] =
          static_cast<std::uint8_t>(integer(colour.As<Napi::Array>().Get(i), "colour", 0, 255));
    }
  }
  if (const Napi::Value background = from.Get("background"); !background.IsUndefined()) {
    const Pixels behind = to_pixels(background);
    if (behind.view.width != plan.width || behind.view.height != plan.height) {
      wrong_value(background, "an image of the canvas's size", "background");
    }
    plan.background = behind.view;
    call.background = behind.data;
  }
  if (const Napi::Value shadow = from.Get("shadow"); !shadow.IsUndefined()) {
    const Napi::Object drop = object(shadow, "shadow");
    plan.shadow = DropShadow{number_in(drop, "opacity", 0, 1), number_in(drop, "sigma", 0.1, 4096),
                             integer(drop, "offsetX", -kMaxSide, kMaxSide),
                             integer(drop, "offsetY", -kMaxSide, kMaxSide),
                             integer(drop, "fade", 0, kMaxSide)};
  }
  call.job.buffer = {pixels.view.data, pixels.data.ByteLength()};
  call.job.width = pixels.view.width;
  call.job.height = pixels.view.height;
  return call;
}

PngJob to_png_job(const Napi::Value& value, const ImageView& pixels) {
  const Napi::Object from = object(value, "options");
  PngJob job;
  job.pixels = pixels;
  job.alpha_only = choice<bool>(from, "channels", {{"rgba", false}, {"alpha", true}});
  job.effort = integer(from, "effort", 1, 9);
  const Napi::Value icc = from.Get("icc");
  if (!icc.IsUndefined()) {
    if (!icc.IsTypedArray() || icc.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
      wrong_type(icc, "a Uint8Array", "icc");
    }
    // Copied, a few kilobytes, so that only `pixels` is borrowed.
    const Napi::Uint8Array bytes = icc.As<Napi::Uint8Array>();
    job.icc.assign(bytes.Data(), bytes.Data() + bytes.ByteLength());
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
    job.pixels_per_metre = both;
  }
  return job;
}

Engine::Deadline to_deadline(const Napi::Value& value) {
  const Napi::Value deadline = value.As<Napi::Object>().Get("deadlineMs");
  if (deadline.IsUndefined()) return {};
  const double given = number(deadline, "deadlineMs");
  if (!(given >= 0 && given <= kMaxMilliseconds)) {
    wrong_value(deadline, "a number from 0 to " + std::to_string(kMaxMilliseconds), "deadlineMs");
  }
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double, std::milli>(given));
}

std::uint64_t to_id(const Napi::Value& value) {
  return static_cast<std::uint64_t>(integer(value, "id", 0, kMaxSafeInteger));
}

std::chrono::milliseconds to_grace(const Napi::Value& value) {
  return std::chrono::milliseconds(integer(value, "graceMs", 0, kMaxMilliseconds));
}

namespace {

template <typename T>
Napi::Value from_vector(Napi::Env env, std::vector<T> values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = owned->data();
  const std::size_t size = owned->size();
  const Napi::Value buffer = Napi::Buffer<T>::NewOrCopy(
      env, data, size,
      [](Napi::BasicEnv, T*, std::vector<T>* hint) {
        const std::unique_ptr<std::vector<T>> freed(hint);
      },
      owned.get());
  static_cast<void>(owned.release());
  return buffer;
}

}  // namespace

Napi::Value from_network_info(Napi::Env env, const std::string& name, const NetworkInfo& info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("name", name);
  result.Set("inputs", from_strings(env, info.inputs));
  result.Set("outputs", from_strings(env, info.outputs));
  result.Set("loadMs", info.load_ms);
  result.Set("warmUpMs", info.warm_up_ms);
  return result;
}

Napi::Value from_gpu(Napi::Env env, const ort::GpuRuntime& gpu) {
  const ort::DeviceProperties& device = gpu.device;
  const auto version = [](int cuda) {
    return std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  };
  Napi::Object result = Napi::Object::New(env);
  result.Set("id", device.number);
  result.Set("name", device.name);
  result.Set("computeCapability",
             std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor));
  result.Set("memoryBytes", static_cast<double>(device.memory_bytes));
  result.Set("driver", gpu.driver);
  result.Set("driverCuda", version(device.driver_cuda));
  result.Set("cuda", version(gpu.cuda_runtime));
  result.Set("tensorrt", gpu.tensorrt);
  return result;
}

Napi::Value from_gpus(Napi::Env env, const std::vector<ort::GpuRuntime>& gpus) {
  Napi::Array result = Napi::Array::New(env, gpus.size());
  for (std::uint32_t i = 0; i < gpus.size(); ++i) result.Set(i, from_gpu(env, gpus[i]));
  return result;
}

Napi::Value from_log(Napi::Env env, const std::vector<ort::LogLine>& lines) {
  Napi::Array result = Napi::Array::New(env, lines.size());
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    Napi::Object line = Napi::Object::New(env);
    line.Set("level", lines[i].level);
    line.Set("text", lines[i].text);
    result.Set(i, line);
  }
  return result;
}

Napi::Value from_subject_types_info(Napi::Env env, const SubjectTypesInfo& info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("features", static_cast<double>(info.features));
  result.Set("loadMs", info.load_ms);
  result.Set("warmUpMs", info.warm_up_ms);
  return result;
}

Napi::Value from_selector_info(Napi::Env env, const SelectorInfo& info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("embeddingBytes", static_cast<double>(info.embedding_bytes));
  result.Set("loadMs", info.load_ms);
  return result;
}

Napi::Value from_embedding(Napi::Env env, Embedding& embedding) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("data", from_vector(env, std::move(embedding.values)));
  result.Set("queueMs", embedding.queue_ms);
  result.Set("embedMs", embedding.embed_ms);
  return result;
}

Napi::Value from_select_result(Napi::Env env, SelectResult& result) {
  Napi::Object to = Napi::Object::New(env);
  Napi::Object mask = Napi::Object::New(env);
  mask.Set("data", from_vector(env, std::move(result.selection.mask)));
  mask.Set("width", result.selection.side);
  mask.Set("height", result.selection.side);
  to.Set("mask", mask);
  to.Set("score", static_cast<double>(result.selection.score));
  to.Set("queueMs", result.queue_ms);
  to.Set("selectMs", result.select_ms);
  return to;
}

Napi::Value from_description(Napi::Env env, const Description& description) {
  Napi::Object result = Napi::Object::New(env);
  auto features = Napi::Float32Array::New(env, description.features.size());
  std::copy(description.features.begin(), description.features.end(), features.Data());
  result.Set("features", features);
  if (description.subject) result.Set("subject", from_subject(env, *description.subject));
  return result;
}

Napi::Value from_matte_result(Napi::Env env, MatteResult& result) {
  Napi::Object to = Napi::Object::New(env);
  to.Set("width", result.width);
  to.Set("height", result.height);
  to.Set("box", from_box(env, result.summary.box));
  to.Set("foregroundPixels", static_cast<double>(result.summary.foreground_pixels));
  to.Set("opaque", result.summary.opaque);
  to.Set("runs", result.runs);
  to.Set("queueMs", result.queue_ms);
  to.Set("prepareMs", result.prepare_ms);
  to.Set("inferMs", result.infer_ms);
  to.Set("subjectMs", result.subject_ms);
  if (result.subject) to.Set("subject", from_subject(env, *result.subject));
  to.Set("matteMs", result.matte_ms);
  if (!result.output.empty()) {
    Napi::Object output = Napi::Object::New(env);
    output.Set("data", from_vector(env, std::move(result.output)));
    output.Set("width", result.output_width);
    output.Set("height", result.output_height);
    output.Set("view", from_box(env, result.output_view));
    to.Set("output", output);
  }
  return to;
}

Napi::Value from_compose_result(Napi::Env env, const ComposeResult& result) {
  Napi::Object to = Napi::Object::New(env);
  to.Set("box", from_box(env, result.summary.box));
  to.Set("opaque", result.summary.opaque);
  to.Set("queueMs", result.queue_ms);
  to.Set("composeMs", result.compose_ms);
  return to;
}

namespace {

Napi::Value from_counts(Napi::Env env, std::span<const std::uint64_t> counts) {
  Napi::Array result = Napi::Array::New(env, counts.size());
  for (std::uint32_t i = 0; i < counts.size(); ++i) result.Set(i, static_cast<double>(counts[i]));
  return result;
}

Napi::Object from_device_stats(Napi::Env env, int id, const DeviceWork& stats) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("id", id);
  if (!stats.lost.ok()) result.Set("lost", stats.lost.message());
  result.Set("losses", static_cast<double>(stats.losses));
  result.Set("batches", from_counts(env, stats.batches));
  Napi::Array waits = Napi::Array::New(env, stats.waits.size());
  for (std::uint32_t i = 0; i < stats.waits.size(); ++i) {
    Napi::Array wait = Napi::Array::New(env, 2);
    wait.Set(0U,
             i < kWaitBoundsMs.size() ? kWaitBoundsMs[i] : std::numeric_limits<double>::infinity());
    wait.Set(1U, static_cast<double>(stats.waits[i]));
    waits.Set(i, wait);
  }
  result.Set("waits", waits);
  result.Set("waitedMs", stats.waited_ms);
  return result;
}

Napi::Array from_opening(Napi::Env env, const std::map<std::string, OpeningStep>& opening) {
  Napi::Array all = Napi::Array::New(env, opening.size());
  std::uint32_t next = 0;
  for (const auto& [network, step] : opening) {
    Napi::Object of_network = Napi::Object::New(env);
    of_network.Set("network", network);
    if (step.device_id) of_network.Set("device", *step.device_id);
    of_network.Set("batch", step.batch);
    of_network.Set("step", step.step);
    of_network.Set("steps", step.steps);
    of_network.Set("seconds", milliseconds(step.since, Clock::now()) / 1000);
    all.Set(next++, of_network);
  }
  return all;
}

}  // namespace

Napi::Value from_stats(Napi::Env env, Engine& engine) {
  const SchedulerStats stats = engine.stats();
  Napi::Object result = Napi::Object::New(env);
  result.Set("queued", static_cast<double>(stats.queued));
  result.Set("running", static_cast<double>(stats.running));
  result.Set("done", static_cast<double>(stats.done));
  result.Set("failed", static_cast<double>(stats.failed));
  result.Set("cancelled", static_cast<double>(stats.cancelled));
  result.Set("keptBytes", static_cast<double>(Engine::kept_bytes()));
  result.Set("opening", from_opening(env, engine.opening()));
  const std::vector<DeviceWork> devices = engine.device_work();
  Napi::Array all = Napi::Array::New(env, devices.size());
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    Napi::Object device = from_device_stats(env, engine.device_ids()[i], devices[i]);
    if (!engine.budgets().empty()) {
      const ort::DeviceMemoryBudget& memory = *engine.budgets()[i];
      device.Set("memoryBytes", static_cast<double>(memory.reserved()));
      device.Set("memoryLimitBytes", static_cast<double>(memory.limit()));
    }
    all.Set(i, device);
  }
  result.Set("devices", all);
  return result;
}

Napi::Value from_bytes(Napi::Env env, std::vector<std::uint8_t> bytes) {
  return from_vector(env, std::move(bytes));
}

}  // namespace cutout::binding
