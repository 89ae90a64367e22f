#include <napi.h>

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("abi", Napi::Number::New(env, 1));
  return exports;
}

NODE_API_MODULE(cutout, Init)
