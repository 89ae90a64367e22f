#include "core/simd.h"
#include "registry.h"

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  for (const auto entry : cutout::test::registry()) entry(env, exports);
  exports.Set("simdLevel", Napi::Function::New(env, [](const Napi::CallbackInfo& info) {
                return Napi::String::New(info.Env(), cutout::simd_level());
              }));
  return exports;
}

NODE_API_MODULE(cutout_test, Init)
