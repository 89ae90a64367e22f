#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/engine.h"

/// From the objects of src/engine/types.ts to the structs of native/ and back. Everything that
/// comes in is checked: a wrong type throws TypeError, a wrong value RangeError, at once. JS thread
/// only.
namespace cutout::binding {

EngineOptions to_engine_options(const Napi::Value& value);
NetworkSpec to_network_spec(const Napi::Value& value);

/// Borrowed RGBA8 pixels; `data` is the typed array they live in.
struct Pixels {
  Napi::Uint8Array data;
  ImageView view;
};
/// Whether `data` may be longer than the picture.
enum class Room { kExact, kMoreAllowed };
Pixels to_pixels(const Napi::Value& value, Room room = Room::kExact);

struct MatteCall {
  std::string network;
  MattePlan plan;
  Engine::Deadline deadline;
};
MatteCall to_matte_call(const Napi::Value& value, const ImageView& pixels);

SubjectTypesSpec to_subject_types_spec(const Napi::Value& value);

struct DescribeCall {
  DescribeJob job;
  Napi::Float32Array alpha;  // what job.matte borrows
  Engine::Deadline deadline;
};
DescribeCall to_describe_call(const Napi::Value& value, const ImageView& pixels);

struct ComposeCall {
  ComposeJob job;
  std::optional<Napi::Uint8Array> background;  // what job.plan.background borrows
  Engine::Deadline deadline;
};
ComposeCall to_compose_call(const Napi::Value& value, const Pixels& pixels);

struct PngCall {
  PngJob job;
  Engine::Deadline deadline;
};
PngCall to_png_call(const Napi::Value& value, const ImageView& pixels);

std::uint64_t to_id(const Napi::Value& value);
std::chrono::milliseconds to_grace(const Napi::Value& value);

Napi::Value from_network_info(Napi::Env env, const std::string& name, const NetworkInfo& info);
Napi::Value from_subject_types_info(Napi::Env env, const SubjectTypesInfo& info);
Napi::Value from_description(Napi::Env env, const Description& description);
Napi::Value from_matte_result(Napi::Env env, const MatteResult& result);
Napi::Value from_compose_result(Napi::Env env, const ComposeResult& result);
Napi::Value from_stats(Napi::Env env, const SchedulerStats& stats, std::size_t kept_bytes);
/// The bytes themselves as a Buffer where the environment allows foreign memory, else a copy.
Napi::Value from_bytes(Napi::Env env, std::vector<std::uint8_t> bytes);

}  // namespace cutout::binding
