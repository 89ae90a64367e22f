#include "arguments.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "checked_value.h"

namespace cutout::binding {

namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;
constexpr int kMaxSide = 65535;
/// So that byte offsets of an image fit into 31 bits.
constexpr std::int64_t kMaxPixels = (std::int64_t{1} << 29) - 1;
constexpr int kMaxMilliseconds = std::numeric_limits<std::int32_t>::max();
constexpr int kMaxThreads = 1024;
constexpr std::uint32_t kMaxPoints = 1024;

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
  if (!from.Get("gpuProgram").IsUndefined()) spec.gpu_program = boolean(from, "gpuProgram");
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

MatteCall to_matte_call(const Napi::Value& value, const ImageView& pixels) {
  const Napi::Object from = object(value, "plan");
  MatteCall call;
  call.network = text(from, "network");
  if (!from.Get("second").IsUndefined()) call.second = text(from, "second");
  call.plan.width = integer(from, "width", 1, pixels.width);
  call.plan.height = integer(from, "height", 1, pixels.height);
  call.plan.hidden_colour = choice<HiddenColour>(
      from, "hiddenColour", {{"clear", HiddenColour::kClear}, {"keep", HiddenColour::kKeep}});
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
  if (!from.Get("returnOutput").IsUndefined())
    call.plan.return_output = boolean(from, "returnOutput");
  if (const Napi::Value cached = from.Get("cached"); !cached.IsUndefined()) {
    const Napi::Object given = object(cached, "cached");
    CachedOutput& to = call.plan.cached.emplace();
    to.width = integer(given, "width", 1, 8192);
    to.height = integer(given, "height", 1, 8192);
    to.view = box_inside(given, "view", call.plan.width, call.plan.height);
    call.cached = typed_array<std::uint8_t>(given, "data", napi_uint8_array, "a Uint8Array");
    to.values = floats_in(*call.cached, "data");
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
  spec.head = to_head(object(from.Get("head"), "head"));
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

}  // namespace cutout::binding
