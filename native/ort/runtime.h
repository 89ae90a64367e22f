#pragma once

#include <string>

#include "core/status.h"

namespace cutout::ort {

/// Opens the ONNX Runtime library and hands its C API to the C++ wrapper. The library is never
/// linked: one addon serves every release and every build of it (CPU, CUDA, TensorRT), see
/// docs/decisions. Once a process; a second call with the same path does nothing, with another path
/// fails.
Status open_runtime(const std::string& path);

/// Version of the opened library, for example "1.30.0"; empty before open_runtime.
std::string runtime_version();

}  // namespace cutout::ort
