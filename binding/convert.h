#pragma once

#include <napi.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ort/runtime_log.h"
#include "pipeline/engine.h"

/// Converts the objects of src/engine/types.ts to the structs of native/ and back. All input is
/// checked: throws TypeError for a wrong type and RangeError for a wrong value. JS thread only.
namespace cutout::binding {

EngineOptions to_engine_options(const Napi::Value& value);
NetworkSpec to_network_spec(const Napi::Value& value);

/// Borrowed RGBA8 pixels; `data` is the typed array they live in.
struct Pixels {
  Napi::Uint8Array data;
  ImageView view;
};
/// Whether `data` may be longer than width * height * 4 bytes.
enum class BufferLength { kExact, kAtLeast };
Pixels to_pixels(const Napi::Value& value, BufferLength required = BufferLength::kExact);

struct MatteCall {
  std::string network;
  std::optional<std::string> second;
  MattePlan plan;
  std::optional<Napi::Uint8Array> mask;        // borrowed by plan.mask
  std::optional<Napi::Uint8Array> first_mask;  // borrowed by plan.first_mask
  std::optional<Napi::Uint8Array> kept;        // borrowed by plan.kept
};
MatteCall to_matte_call(const Napi::Value& value, const ImageView& pixels);

SubjectTypesSpec to_subject_types_spec(const Napi::Value& value);

SelectorSpec to_selector_spec(const Napi::Value& value);

struct SelectCall {
  SelectJob job;
  Napi::Uint8Array embedding;  // borrowed by job.embedding
};
SelectCall to_select_call(const Napi::Value& value);

struct DescribeCall {
  DescribeJob job;
  Napi::Float32Array alpha;  // borrowed by job.matte
};
DescribeCall to_describe_call(const Napi::Value& value, const ImageView& pixels);

struct ComposeCall {
  ComposeJob job;
  std::optional<Napi::Uint8Array> background;  // borrowed by job.plan.background
};
ComposeCall to_compose_call(const Napi::Value& value, const Pixels& pixels);

PngJob to_png_job(const Napi::Value& value, const ImageView& pixels);

/// `deadlineMs` of a plan or of options that have been converted: from now on; none if it is
/// undefined.
Engine::Deadline to_deadline(const Napi::Value& value);

std::uint64_t to_id(const Napi::Value& value);
std::chrono::milliseconds to_grace(const Napi::Value& value);

Napi::Value from_network_info(Napi::Env env, const std::string& name, const NetworkInfo& info);
Napi::Value from_gpus(Napi::Env env, const std::vector<ort::GpuRuntime>& gpus);
Napi::Value from_log(Napi::Env env, const std::vector<ort::LogLine>& lines);
Napi::Value from_subject_types_info(Napi::Env env, const SubjectTypesInfo& info);
Napi::Value from_selector_info(Napi::Env env, const SelectorInfo& info);
Napi::Value from_embedding(Napi::Env env, Embedding& embedding);
Napi::Value from_select_result(Napi::Env env, SelectResult& result);
Napi::Value from_description(Napi::Env env, const Description& description);
Napi::Value from_matte_result(Napi::Env env, MatteResult& result);
Napi::Value from_compose_result(Napi::Env env, const ComposeResult& result);
Napi::Value from_stats(Napi::Env env, Engine& engine);
/// A Buffer that owns `bytes`, or a copy where the environment does not allow external memory.
Napi::Value from_bytes(Napi::Env env, std::vector<std::uint8_t> bytes);

}  // namespace cutout::binding
