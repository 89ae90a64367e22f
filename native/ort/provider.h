#pragma once

#include <onnxruntime_cxx_api.h>

#include "core/status.h"
#include "ort/network.h"

namespace cutout::ort {

/// Makes the session run on the provider, or says in one sentence why this library or machine
/// cannot.
Status append_provider(Provider provider, int device_id, Ort::SessionOptions& options);

}  // namespace cutout::ort
