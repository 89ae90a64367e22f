#pragma once

#include <cstddef>
#include <string>

#include "core/status.h"

namespace cutout::ort {

/// Opens the ONNX Runtime library with dlopen and passes its C API to the C++ wrapper. The library
/// is not linked, so that one addon works with every release and build of it (CPU, CUDA, TensorRT).
/// Once in a process: a second call with the same path has no effect, one with another path fails
/// with kRuntime.
Status open_runtime(const std::string& path);

/// Version of the opened library, for example "1.30.0"; empty before open_runtime.
std::string runtime_version();

/// Returns freed heap to the system; opening a network frees hundreds of megabytes.
void trim_heap();

/// Returns memory that no run is using to the system. May be called from any thread, also during
/// runs.
void release_memory();

/// Upper bound of the bytes that release_memory() would return, without the heap.
std::size_t kept_bytes();

}  // namespace cutout::ort
