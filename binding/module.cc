#include "module.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/cpu.h"
#include "core/simd.h"
#include "engine.h"
#include "instance.h"
#include "low_precision/kernels.h"
#include "ort/driver.h"
#include "ort/runtime.h"
#include "results.h"

namespace cutout::binding {

namespace {

/// Must equal expectedAbi of src/engine/types.ts; raised with every change of that contract.
constexpr int kAbi = 25;

Napi::Value versions(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const low_precision::Kernels& kernels = low_precision::kernels();
  std::vector<std::string> usable = kernels.int8;
  usable.insert(usable.end(), kernels.bf16.begin(), kernels.bf16.end());
  return object_of(env, "addon", CUTOUT_VERSION, "simd", simd_level(), "onnxruntime",
                   ort::runtime_version(), "instructionSets", array_of(env, instruction_sets()),
                   "operators", array_of(env, usable), "refusedOperators",
                   array_of(env, kernels.refused));
}

Napi::Value compute_capabilities(const Napi::CallbackInfo& info) {
  return array_of(info.Env(), ort::compute_capabilities());
}

Napi::Value take_log(const Napi::CallbackInfo& info) {
  return array_of(info.Env(), ort::take_log());
}

/// `exitAfter(ms, code)`: ends the process after that time, whatever its other threads do. The
/// destructors of a usual exit join threads that a library may hold for as long as it likes.
void exit_after(const Napi::CallbackInfo& info) {
  const std::chrono::milliseconds delay(info[0].As<Napi::Number>().Int64Value());
  const int code = info[1].As<Napi::Number>().Int32Value();
  std::thread([delay, code] {
    std::this_thread::sleep_for(delay);
    std::_Exit(code);
  }).detach();
}

}  // namespace

Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Instance(env));  // deleted with the environment
  exports.Set("abi", kAbi);
  exports.Set("versions", Napi::Function::New<&versions>(env, "versions"));
  exports.Set("computeCapabilities",
              Napi::Function::New<&compute_capabilities>(env, "computeCapabilities"));
  exports.Set("takeLog", Napi::Function::New<&take_log>(env, "takeLog"));
  exports.Set("exitAfter", Napi::Function::New<&exit_after>(env, "exitAfter"));
  exports.Set("Engine", EngineObject::define(env));
  return exports;
}

}  // namespace cutout::binding
