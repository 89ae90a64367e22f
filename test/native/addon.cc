#include "registry.h"

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  for (const auto entry : cutout::test::registry()) entry(env, exports);
  return exports;
}

NODE_API_MODULE(cutout_test, Init)
