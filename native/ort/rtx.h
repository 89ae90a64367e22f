#pragma once

#include <onnxruntime_cxx_api.h>

#include <string>

#include "core/status.h"
#include "ort/gpu_runtime.h"
#include "ort/options.h"

/// TensorRT for RTX, a provider that ONNX Runtime takes at run time from a library of its own.
namespace cutout::ort {

/// Registers the library of the provider and finds the GPU of `runtime.device`; writes the
/// provider's version to `runtime`. kProvider for a library that cannot be used, kDevice where the
/// provider does not offer that GPU.
Status open_rtx(const std::string& library, GpuRuntime& runtime);

/// Appends the provider to the session's options; open_rtx() must have succeeded. Throws.
void append_rtx(const GpuOptions& gpu, Ort::SessionOptions& options);

}  // namespace cutout::ort
