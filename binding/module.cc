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
constexpr int kAbi = 23;

Napi::Value versions(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("addon", CUTOUT_VERSION);
  result.Set("simd", simd_level());
  result.Set("onnxruntime", ort::runtime_version());
  const auto names = [&info](const std::vector<std::string>& from) {
    Napi::Array list = Napi::Array::New(info.Env());
    for (const std::string& name : from) list.Set(list.Length(), name);
    return list;
  };
  result.Set("instructionSets", names(instruction_sets()));
  const low_precision::Kernels& kernels = low_precision::kernels();
  std::vector<std::string> usable = kernels.int8;
  usable.insert(usable.end(), kernels.bf16.begin(), kernels.bf16.end());
  result.Set("operators", names(usable));
  result.Set("refusedOperators", names(kernels.refused));
  return result;
}

Napi::Value gpu_count(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), ort::device_count());
}

Napi::Value take_log(const Napi::CallbackInfo& info) {
  return from_log(info.Env(), ort::take_log());
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
  exports.Set("gpuCount", Napi::Function::New<&gpu_count>(env, "gpuCount"));
  exports.Set("takeLog", Napi::Function::New<&take_log>(env, "takeLog"));
  exports.Set("exitAfter", Napi::Function::New<&exit_after>(env, "exitAfter"));
  exports.Set("Engine", EngineObject::define(env));
  return exports;
}

}  // namespace cutout::binding
