#pragma once

#include <napi.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "pipeline/engine.h"

/// Converts the objects of src/engine/types.ts that JavaScript hands over to the structs of
/// native/. All input is checked: throws TypeError for a wrong type and RangeError for a wrong
/// value. JS thread only.
namespace cutout::binding {

EngineOptions to_engine_options(const Napi::Value& value);
NetworkSpec to_network_spec(const Napi::Value& value);
SubjectTypesSpec to_subject_types_spec(const Napi::Value& value);
SelectorSpec to_selector_spec(const Napi::Value& value);

/// Memory of JavaScript that a job borrows, in the order of its arguments.
struct BufferAccess {
  Napi::Uint8Array data;
  bool written;
};
using Borrowed = std::vector<BufferAccess>;

/// A job from the arguments behind its id; what it borrows is added to `borrowed`.
ConstImageView to_embed_job(const Napi::CallbackInfo& info, Borrowed& borrowed);
SelectJob to_select_job(const Napi::CallbackInfo& info, Borrowed& borrowed);
MatteOrder to_matte_order(const Napi::CallbackInfo& info, Borrowed& borrowed);
ComposeJob to_compose_job(const Napi::CallbackInfo& info, Borrowed& borrowed);
PngJob to_png_job(const Napi::CallbackInfo& info, Borrowed& borrowed);

std::uint64_t to_id(const Napi::Value& value);
std::chrono::milliseconds to_grace(const Napi::Value& value);

}  // namespace cutout::binding
