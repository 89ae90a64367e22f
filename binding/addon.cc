#include <napi.h>

#include "core/cpu.h"
#include "core/simd.h"
#include "engine.h"
#include "instance.h"
#include "ort/runtime.h"

namespace {

/// Compared with ABI of src/engine/types.ts: raised with every change of that contract.
constexpr int kAbi = 6;

Napi::Value versions(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("addon", CUTOUT_VERSION);
  result.Set("simd", cutout::simd_level());
  result.Set("onnxruntime", cutout::ort::runtime_version());
  Napi::Array sets = Napi::Array::New(info.Env());
  for (const std::string& name : cutout::instruction_sets()) sets.Set(sets.Length(), name);
  result.Set("instructionSets", sets);
  return result;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new cutout::binding::Instance(env));  // deleted with the environment
  exports.Set("abi", kAbi);
  exports.Set("versions", Napi::Function::New<&versions>(env, "versions"));
  exports.Set("Engine", cutout::binding::EngineObject::define(env));
  return exports;
}

}  // namespace

NODE_API_MODULE(cutout, init)
