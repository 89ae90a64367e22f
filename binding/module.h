#pragma once

#include <napi.h>

namespace cutout::binding {

/// Adds NativeModule of src/engine/types.ts to `exports`. Once for each environment.
Napi::Object init(Napi::Env env, Napi::Object exports);

}  // namespace cutout::binding
