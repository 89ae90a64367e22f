#pragma once

#include <napi.h>

#include "core/status.h"

namespace cutout::binding {

/// An Error with the status' message and its EngineCode (src/engine/types.ts) as `code`. JS thread
/// only.
Napi::Error make_error(Napi::Env env, const Status& status);

}  // namespace cutout::binding
