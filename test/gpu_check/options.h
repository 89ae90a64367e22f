#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "ort/options.h"

namespace cutout::gpu_check {

struct Options {
  /// Number of the GPU; none: the host stands in for it (--device host).
  std::optional<int> device = 0;
  std::string kernels;  // libcutout_cuda.so
  int cases = 2000;     // random cases of all kernels together
  /// ONNX Runtime and the libraries of CUDA, each after those it needs.
  std::string runtime;
  std::vector<std::string> libraries;
  ort::Provider provider = ort::Provider::kCuda;
  std::string engine_cache;  // of TensorRT
  std::string network;       // as it runs on the device
  std::string program;       // the same for GpuNetwork, which then runs instead
  std::string reference;     // the same in float32, for the CPU; empty: `network`
  int width = 1024;
  int height = 1024;
  bool logit = false;
  bool fp16 = false;
  int largest_batch = 8;
  double seconds = 5;  // of each measurement
  std::vector<std::string> parts{"kernels", "network", "engine", "lost"};
  std::string json;
};

/// Whether a part is to be checked.
bool wants(const Options& options, const std::string& part);

/// The options of a command line, or what is wrong with it.
Status parse(int argc, char** argv, Options& options);

extern const char* const kUsage;

}  // namespace cutout::gpu_check
