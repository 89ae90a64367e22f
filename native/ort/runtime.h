#pragma once

#include <cstddef>
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

/// Gives freed heap back to the system: opening a network leaves hundreds of megabytes of protobuf
/// strings.
void trim_heap();

/// Gives memory that no network needs at the moment back to the system; the next run fetches it
/// again. Any thread, also beside runs.
void release_memory();

/// What release_memory() would give back, without the heap: at most these.
std::size_t kept_bytes();

}  // namespace cutout::ort
