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

/// Makes a session one of the network's engine, which computes 1 to the largest of the options'
/// batches: the engine that the cache has, to whose file `path` is changed, or one that is built
/// from `path` when the session is opened and then kept there. No operator may run on the CPU.
/// open_rtx() must have succeeded. Throws ONNX Runtime's exceptions.
void append_engine(const NetworkOptions& options, Ort::SessionOptions& settings, std::string& path);

}  // namespace cutout::ort
