#pragma once

#include <napi.h>

namespace cutout::binding {

/// NativeModule of src/engine/types.ts into `exports`, once an environment.
Napi::Object init(Napi::Env env, Napi::Object exports);

}  // namespace cutout::binding
