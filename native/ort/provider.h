#pragma once

#include <onnxruntime_cxx_api.h>

#include <string>

#include "core/status.h"
#include "ort/options.h"

namespace cutout::ort {

/// How a message about a provider that cannot be used begins: "CUDA was asked for …".
std::string cannot_be_used(Provider provider);

/// Appends the provider to the session's options and forbids that any operator runs on the CPU
/// instead. The codes of gpu_failure() when this library or machine does not have it.
Status append_provider(Provider provider, const GpuOptions& gpu, Ort::SessionOptions& options);

}  // namespace cutout::ort
