#pragma once

#include <napi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ort/runtime_log.h"
#include "pipeline/engine.h"

/// Converts the structs of native/ to the objects of src/engine/types.ts. JS thread only.
namespace cutout::binding {

Napi::Value from_network_info(Napi::Env env, const std::string& name, const NetworkInfo& info);
Napi::Value from_gpus(Napi::Env env, const std::vector<ort::GpuRuntime>& gpus);
Napi::Value from_log(Napi::Env env, const std::vector<ort::LogLine>& lines);
Napi::Value from_subject_types_info(Napi::Env env, const SubjectTypesInfo& info);
Napi::Value from_selector_info(Napi::Env env, const SelectorInfo& info);
Napi::Value from_embedding(Napi::Env env, Embedding& embedding);
Napi::Value from_select_result(Napi::Env env, SelectResult& result);
Napi::Value from_matte_result(Napi::Env env, MatteResult& result);
Napi::Value from_compose_result(Napi::Env env, const ComposeResult& result);
Napi::Value from_stats(Napi::Env env, Engine& engine);
/// A Buffer that owns `bytes`, or a copy where the environment does not allow external memory.
Napi::Value from_bytes(Napi::Env env, std::vector<std::uint8_t> bytes);

}  // namespace cutout::binding
