#pragma once

#include <onnxruntime_cxx_api.h>

#include "core/status.h"
#include "ort/options.h"

namespace cutout::ort {

/// Appends the provider to the session's options. kRuntime, with the reason, when this library or
/// machine does not have it.
Status append_provider(Provider provider, int device_id, Ort::SessionOptions& options);

}  // namespace cutout::ort
