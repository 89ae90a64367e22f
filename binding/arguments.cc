#include "arguments.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "checked_value.h"

namespace cutout::binding {

namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;
constexpr int kMaxSide = 65535;
/// So that byte offsets of an image fit into 31 bits.
constexpr std::int64_t kMaxPixels = (std::int64_t{1} << 29) - 1;
constexpr int kMaxMilliseconds = std::numeric_limits<std::int32_t>::max();
constexpr int kMaxThreads = 1024;
constexpr int kMaxInput = 8192;
constexpr std::uint32_t kMaxPoints = 1024;
constexpr std::size_t kMaxProfile = std::size_t{1} << 26;  // bytes

/// Throws RangeError for a length in bytes.
[[noreturn]] void wrong_length(const Napi::Uint8Array& data, const std::string& expected,
                               const std::string& name) {
  wrong_value(Napi::Number::New(data.Env(), static_cast<double>(data.ByteLength())), expected,
              name + ".length");
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

/// The float32 numbers in the bytes of a field, which are borrowed.
std::span<const float> borrowed_floats(const Napi::Object& from, const char* name,
                                       Borrowed& borrowed) {
  const Napi::Uint8Array array = byte_array(from, name);
  const std::size_t length = array.ByteLength();
  if (length % sizeof(float) != 0 ||
      reinterpret_cast<std::uintptr_t>(array.Data()) % alignof(float) != 0) {
    wrong_length(array, "whole, aligned numbers of 4 bytes", name);
  }
  borrowed.push_back({array, /*written=*/false});
  return {reinterpret_cast<const float*>(array.Data()), length / sizeof(float)};
}

NetworkInput to_network_input(const Napi::Object& from) {
  NetworkInput input;
  input.width = integer(from, "width", 1, kMaxInput);
  input.height = integer(from, "height", 1, kMaxInput);
  input.mean = triple(from, "mean");
  input.std = triple(from, "std");
  if (std::ranges::any_of(input.std, [](float part) { return part <= 0; })) {
    wrong_value(from.Get("std"), "numbers above 0", "std");
  }
  return input;
}

/// A mask that a plan may have.
std::optional<SubjectMask> to_mask(const Napi::Object& plan, const char* name, Borrowed& borrowed) {
  if (!has(plan, name)) return std::nullopt;
  const Napi::Object given = object(plan.Get(name), name);
  SubjectMask mask;
  mask.width = integer(given, "width", 1, kMaxSide);
  mask.height = integer(given, "height", 1, kMaxSide);
  const Napi::Uint8Array data = byte_array(given, "data");
  const double wanted = static_cast<double>(mask.width) * mask.height;
  if (static_cast<double>(data.ElementLength()) != wanted) {
    wrong_value(given.Get("data"), "width * height bytes", "data");
  }
  mask.values = {data.Data(), data.ElementLength()};
  borrowed.push_back({data, /*written=*/false});
  return mask;
}

/// Whether `data` may be longer than width * height * 4 bytes.
enum class BufferLength { kExact, kAtLeast };

/// Borrowed RGBA8 pixels.
ImageView to_pixels(const Napi::Value& value, bool written, Borrowed& borrowed,
                    BufferLength required = BufferLength::kExact) {
  const Napi::Object from = object(value, "pixels");
  const int width = integer(from, "width", 1, kMaxSide);
  const int height = integer(from, "height", 1, kMaxSide);
  const std::int64_t pixels = static_cast<std::int64_t>(width) * height;
  if (pixels > kMaxPixels) {
    wrong_value(Napi::Number::New(value.Env(), static_cast<double>(pixels)),
                "at most " + std::to_string(kMaxPixels), "width * height");
  }
  const Napi::Uint8Array data = byte_array(from, "data");
  const auto length = static_cast<std::int64_t>(data.ByteLength());
  if (required == BufferLength::kExact ? length != pixels * 4 : length < pixels * 4) {
    std::string expected = std::to_string(pixels * 4) + " (width * height * 4)";
    if (required == BufferLength::kAtLeast) expected += " or more";
    wrong_length(data, expected, "data");
  }
  borrowed.push_back({data, written});
  return {const_cast<std::uint8_t*>(data.Data()), width, height, width * 4L};
}

}  // namespace

EngineOptions to_engine_options(const Napi::Value& value) {
  const Napi::Object from = object(value, "options");
  EngineOptions options;
  options.runtime_path = text(from, "runtimePath");
  options.provider = choice<ort::Provider>(from, "provider",
                                           {{"cpu", ort::Provider::kCpu},
                                            {"cuda", ort::Provider::kCuda},
                                            {"tensorrt", ort::Provider::kTensorRt},
                                            {"tensorrt-rtx", ort::Provider::kTensorRtRtx},
                                            {"webgpu", ort::Provider::kWebGpu}});
  options.device_ids = integers(from, "deviceIds", 0, 1023);
  if (has(from, "libraries")) options.libraries = strings(from, "libraries");
  if (has(from, "plugin")) options.plugin = text(from, "plugin");
  if (has(from, "maxBatch")) options.max_batch = integer(from, "maxBatch", 1, 64);
  if (has(from, "batchDelayMs")) options.batch_delay_ms = integer(from, "batchDelayMs", 0, 1000);
  if (has(from, "deviceMemoryBytes")) {
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
  if (has(from, "saveTo")) spec.save_to = text(from, "saveTo");
  if (has(from, "operators")) spec.operators = text(from, "operators");
  if (has(from, "fp16")) spec.fp16 = boolean(from, "fp16");
  if (has(from, "gpuProgram")) spec.gpu_program = boolean(from, "gpuProgram");
  if (has(from, "engineCache")) spec.engine_cache = text(from, "engineCache");
  if (has(from, "kernelCache")) spec.kernel_cache = text(from, "kernelCache");
  spec.input = to_network_input(from);
  spec.output = choice<NetworkOutput>(
      from, "output",
      {{"probability", NetworkOutput::kProbability}, {"logit", NetworkOutput::kLogit}});
  if (has(from, "trainedOn")) {
    spec.trained_on = choice<TrainedOn>(
        from, "trainedOn", {{"masks", TrainedOn::kMasks}, {"mattes", TrainedOn::kMattes}});
  }
  return spec;
}

SubjectTypesSpec to_subject_types_spec(const Napi::Value& value) {
  const Napi::Object from = object(value, "spec");
  return {to_network_spec(from.Get("detector")), to_head(object(from.Get("head"), "head"))};
}

SelectorSpec to_selector_spec(const Napi::Value& value) {
  const Napi::Object from = object(value, "spec");
  SelectorSpec spec;
  spec.encoder = text(from, "encoder");
  spec.decoder = text(from, "decoder");
  if (has(from, "operators")) spec.operators = text(from, "operators");
  spec.input = to_network_input(from);
  return spec;
}

ConstImageView to_embed_job(const Napi::CallbackInfo& info, Borrowed& borrowed) {
  return to_pixels(info[1], /*written=*/false, borrowed);
}

SelectJob to_select_job(const Napi::CallbackInfo& info, Borrowed& borrowed) {
  const Napi::Object from = object(info[1], "plan");
  SelectJob job;
  job.embedding = borrowed_floats(from, "embedding", borrowed);
  const auto add = [&job](const Napi::Object& at, const char* x, const char* y, float label) {
    job.points.push_back({number_in(at, x, 0, 1), number_in(at, y, 0, 1), label});
  };
  const Napi::Value points = from.Get("points");
  if (!points.IsArray() || points.As<Napi::Array>().Length() > kMaxPoints) {
    wrong_type(points, "an array of at most " + std::to_string(kMaxPoints) + " points", "points");
  }
  for (std::uint32_t i = 0; i < points.As<Napi::Array>().Length(); ++i) {
    const Napi::Object point = object(points.As<Napi::Array>().Get(i), "points");
    add(point, "x", "y", boolean(point, "include") ? 1 : 0);
  }
  if (has(from, "box")) {
    const Napi::Object box = object(from.Get("box"), "box");
    add(box, "x1", "y1", 2);
    add(box, "x2", "y2", 3);
  } else {
    // The network was trained with this in place of a box.
    job.points.push_back({0, 0, -1});
  }
  return job;
}

MatteOrder to_matte_order(const Napi::CallbackInfo& info, Borrowed& borrowed) {
  MatteOrder order;
  order.pixels = to_pixels(info[1], /*written=*/true, borrowed);
  const Napi::Object from = object(info[2], "plan");
  MattePlan& plan = order.plan;
  order.network = text(from, "network");
  if (has(from, "second")) order.second = text(from, "second");
  plan.width = integer(from, "width", 1, order.pixels.width);
  plan.height = integer(from, "height", 1, order.pixels.height);
  plan.hidden_colour = choice<HiddenColour>(
      from, "hiddenColour", {{"clear", HiddenColour::kClear}, {"keep", HiddenColour::kKeep}});
  plan.roi = {0, 0, plan.width, plan.height};
  if (has(from, "roi")) plan.roi = box_inside(from, "roi", plan.width, plan.height);
  if (has(from, "input")) {
    const Napi::Object size = object(from.Get("input"), "input");
    plan.input = {integer(size, "width", 1, kMaxInput), integer(size, "height", 1, kMaxInput)};
  }
  if (has(from, "subject")) plan.subject = boolean(from, "subject");
  plan.mask = to_mask(from, "mask", borrowed);
  plan.first_mask = to_mask(from, "firstMask", borrowed);
  if (has(from, "returnOutput")) plan.return_output = boolean(from, "returnOutput");
  if (has(from, "cached")) {
    const Napi::Object given = object(from.Get("cached"), "cached");
    CachedOutput& to = plan.cached.emplace();
    to.width = integer(given, "width", 1, kMaxInput);
    to.height = integer(given, "height", 1, kMaxInput);
    to.view = box_inside(given, "view", plan.width, plan.height);
    to.values = borrowed_floats(given, "data", borrowed);
    const double wanted = static_cast<double>(to.width) * to.height;
    if (static_cast<double>(to.values.size()) != wanted) {
      wrong_value(given.Get("width"), "the width of the data", "width");
    }
  }
  return order;
}

ComposeJob to_compose_job(const Napi::CallbackInfo& info, Borrowed& borrowed) {
  ComposeJob job;
  const ImageView image = to_pixels(info[1], /*written=*/true, borrowed, BufferLength::kAtLeast);
  const Napi::Uint8Array data = borrowed.back().data;
  job.buffer = {image.data, data.ByteLength()};
  job.width = image.width;
  const Napi::Object from = object(info[2], "plan");
  ComposePlan& plan = job.plan;
  plan.width = integer(from, "width", 1, kMaxSide);
  plan.height = integer(from, "height", 1, kMaxSide);
  const std::int64_t needed = static_cast<std::int64_t>(plan.width) * plan.height * 4;
  if (static_cast<std::int64_t>(data.ByteLength()) < needed) {
    wrong_length(data, "at least " + std::to_string(needed) + " (the canvas)", "data");
  }
  plan.source = box_inside(from, "source", image.width, image.height);
  plan.target = box_inside(from, "target", plan.width, plan.height);
  if (has(from, "colour")) {
    const Napi::Array colour = array(from, "colour", 4, "an array of four numbers");
    for (std::uint32_t i = 0; i < plan.colour.size(); ++i) {
      plan.colour[i] = static_cast<std::uint8_t>(integer(colour.Get(i), "colour", 0, 255));
    }
  }
  if (has(from, "background")) {
    plan.background = to_pixels(from.Get("background"), /*written=*/false, borrowed);
    if (plan.background.width != plan.width || plan.background.height != plan.height) {
      wrong_value(from.Get("background"), "an image of the canvas's size", "background");
    }
  }
  if (has(from, "shadow")) {
    const Napi::Object drop = object(from.Get("shadow"), "shadow");
    plan.shadow = DropShadow{number_in(drop, "opacity", 0, 1), number_in(drop, "sigma", 0.1, 4096),
                             integer(drop, "offsetX", -kMaxSide, kMaxSide),
                             integer(drop, "offsetY", -kMaxSide, kMaxSide),
                             integer(drop, "fade", 0, kMaxSide)};
  }
  return job;
}

PngJob to_png_job(const Napi::CallbackInfo& info, Borrowed& borrowed) {
  PngJob job;
  job.pixels = to_pixels(info[1], /*written=*/false, borrowed);
  const Napi::Object from = object(info[2], "options");
  job.options.alpha_only = choice<bool>(from, "channels", {{"rgba", false}, {"alpha", true}});
  job.options.effort = integer(from, "effort", 1, 9);
  if (has(from, "icc")) {
    // Copied, a few kilobytes, so that only `pixels` is borrowed.
    const Napi::Uint8Array icc = byte_array(from, "icc");
    if (icc.ByteLength() > kMaxProfile) {
      wrong_length(icc, "at most " + std::to_string(kMaxProfile) + " bytes", "icc");
    }
    job.options.icc = copied(icc);
  }
  if (has(from, "pixelsPerMetre")) {
    const Napi::Array density = array(from, "pixelsPerMetre", 2, "an array of two numbers");
    for (std::uint32_t i = 0; auto& each : job.options.pixels_per_metre.emplace()) {
      each =
          static_cast<std::uint32_t>(integer(density.Get(i++), "pixelsPerMetre", 1, 2147483647.0));
    }
  }
  return job;
}

std::uint64_t to_id(const Napi::Value& value) {
  return static_cast<std::uint64_t>(integer(value, "id", 0, kMaxSafeInteger));
}

std::chrono::milliseconds to_grace(const Napi::Value& value) {
  return std::chrono::milliseconds(integer(value, "graceMs", 0, kMaxMilliseconds));
}

}  // namespace cutout::binding
