#pragma once

#include <napi.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/engine.h"

/// Converts the objects of src/engine/types.ts that JavaScript hands over to the structs of
/// native/. All input is checked: throws TypeError for a wrong type and RangeError for a wrong
/// value. JS thread only.
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
  std::optional<Napi::Uint8Array> cached;      // borrowed by plan.cached
};
MatteCall to_matte_call(const Napi::Value& value, const ImageView& pixels);

SubjectTypesSpec to_subject_types_spec(const Napi::Value& value);

SelectorSpec to_selector_spec(const Napi::Value& value);

struct SelectCall {
  SelectJob job;
  Napi::Uint8Array embedding;  // borrowed by job.embedding
};
SelectCall to_select_call(const Napi::Value& value);

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

}  // namespace cutout::binding
