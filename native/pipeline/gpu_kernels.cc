#include "pipeline/gpu_kernels.h"

#include <filesystem>
#include <system_error>

#include "cuda/library.h"
#include "ort/runtime_log.h"

namespace cutout {

Status open_gpu_kernels(const std::string& file, const cuda::Table*& kernels) {
  kernels = nullptr;
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return cuda::open_library(file, kernels);
  const std::string line =
      "Networks run on the GPU by ONNX Runtime alone, the steps around them on the CPU: there is "
      "no " +
      file + " (docs/gpu.md).";
  ort::log_line(ort::kWarning, line.c_str());
  return {};
}

}  // namespace cutout
