#pragma once

#include <onnxruntime_cxx_api.h>

#include <mutex>
#include <string>

#include "core/status.h"
#include "ort/options.h"

namespace cutout::ort {

/// How a message about a provider that cannot be used begins: "CUDA was asked for …".
std::string cannot_be_used(Provider provider);

/// Appends a provider of the library itself to the session's options and forbids that any operator
/// runs on the CPU instead. The codes of gpu_failure() when this library or machine does not have
/// it.
Status append_provider(Provider provider, const GpuOptions& gpu, Ort::SessionOptions& options);

/// Held while a session of the provider is opened, run or closed, where its sessions must not do
/// that at the same time: those of WebGPU share a queue without a lock (microsoft/onnxruntime issue
/// 32561).
std::unique_lock<std::mutex> take_turn(Provider provider);

}  // namespace cutout::ort
