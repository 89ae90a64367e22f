#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "ort/driver.h"
#include "ort/options.h"

namespace cutout::ort {

/// What identifies a TensorRT engine beside its network.
struct GpuRuntime {
  DeviceProperties device;
  int cuda_runtime = 0;  // 1000 * major + 10 * minor
  std::string tensorrt;  // for example "10.16.1"; empty without
  std::string driver;    // version of the kernel module, or of CUDA where it is not readable
  /// Why ONNX Runtime's provider cannot be used, where networks may run without it.
  Status provider;
};

/// Whether networks may run by Cutout's own kernels alone (pipeline/gpu_network.h).
enum class OwnKernels { kNone, kThere };

/// Loads the GPU provider into the opened library, TensorRT for RTX from the file `plugin`, and
/// checks driver and GPU, so that a missing part is an error before any network is opened.
/// `libraries` are files of CUDA and TensorRT, each after those it needs; they are opened first, so
/// that the provider finds them outside the loader's search path. With kernels of its own a missing
/// provider is no error, but kept in `runtime`.
Status open_device(Provider provider, int number, const std::vector<std::string>& libraries,
                   const std::string& plugin, OwnKernels own, GpuRuntime& runtime);

}  // namespace cutout::ort
