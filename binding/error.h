#pragma once

#include <napi.h>

#include "core/status.h"

namespace cutout::binding {

/// An Error whose `code` is the status' EngineCode (src/engine/types.ts). JS thread only.
Napi::Error make_error(Napi::Env env, const Status& status);

/// Throws make_error() unless the status is ok. JS thread only.
void throw_if_error(Napi::Env env, const Status& status);

}  // namespace cutout::binding
