#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/status.h"
#include "ort/runtime_log.h"
#include "pipeline/engine.h"

namespace cutout::binding {

/// An Error with the status' message and its EngineCode (src/engine/types.ts) as `code`. JS thread
/// only.
Napi::Error make_error(Napi::Env env, const Status& status);

/// These functions convert the structs of native/ to the objects of src/engine/types.ts. Large
/// values are moved out of a result. JS thread only.

template <typename T>
  requires std::is_arithmetic_v<T>
Napi::Value to_js(Napi::Env env, T value) {
  if constexpr (std::is_same_v<T, bool>) return Napi::Boolean::New(env, value);
  return Napi::Number::New(env, static_cast<double>(value));
}
inline Napi::Value to_js(Napi::Env env, const std::string& text) {
  return Napi::String::New(env, text);
}
inline Napi::Value to_js(Napi::Env env, std::monostate) { return env.Undefined(); }
inline Napi::Value to_js(Napi::Env, const Napi::Value& value) { return value; }
Napi::Value to_js(Napi::Env env, const Box& box);
Napi::Value to_js(Napi::Env env, const Subject& subject);
Napi::Value to_js(Napi::Env env, const NetworkInfo& info);
Napi::Value to_js(Napi::Env env, const SubjectTypesInfo& info);
Napi::Value to_js(Napi::Env env, const SelectorInfo& info);
Napi::Value to_js(Napi::Env env, Embedding& embedding);
Napi::Value to_js(Napi::Env env, Selection& selection);
Napi::Value to_js(Napi::Env env, MatteResult& result);
Napi::Value to_js(Napi::Env env, const ComposeSummary& summary);
/// A Buffer that owns the bytes, or a copy where the environment does not allow external memory.
Napi::Value to_js(Napi::Env env, std::vector<std::uint8_t>& bytes);
Napi::Value to_js(Napi::Env env, const ort::GpuRuntime& gpu);
Napi::Value to_js(Napi::Env env, const ort::LogLine& line);
Napi::Value to_js(Napi::Env env, Engine& engine);  // EngineStats

template <typename T>
Napi::Value to_js(Napi::Env env, const std::optional<T>& value) {
  return value ? to_js(env, *value) : env.Undefined();
}

/// An array of the elements of a range.
template <typename Range>
Napi::Value array_of(Napi::Env env, const Range& range) {
  Napi::Array all = Napi::Array::New(env);
  for (const auto& element : range) all.Set(all.Length(), to_js(env, element));
  return all;
}

inline void set(Napi::Object&) {}
template <typename T, typename... Fields>
void set(Napi::Object& object, const char* name, T&& value, Fields&&... fields) {
  const Napi::Value given = to_js(object.Env(), std::forward<T>(value));
  if (!given.IsUndefined()) object.Set(name, given);
  set(object, std::forward<Fields>(fields)...);
}

/// An object of names, each with its value behind it; what is undefined is left out.
template <typename... Fields>
Napi::Object object_of(Napi::Env env, Fields&&... fields) {
  Napi::Object result = Napi::Object::New(env);
  set(result, std::forward<Fields>(fields)...);
  return result;
}

}  // namespace cutout::binding
