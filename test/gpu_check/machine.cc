#include <string>

#include "gpu_check/checks.h"
#include "ort/driver.h"
#include "ort/gpu_runtime.h"
#include "ort/runtime.h"

namespace cutout::gpu_check {

Status open_machine(const Options& options, Report& report) {
  if (!options.device) {
    report.device = "host (not a GPU)";
    if (options.runtime.empty()) return {};
    return ort::open_runtime(options.runtime);
  }
  ort::DeviceProperties device;
  CUTOUT_RETURN_IF_ERROR(ort::find_device("The GPU cannot be checked", *options.device, device));
  report.device = device.name;
  report.say("driver", true,
             "GPU " + std::to_string(device.number) + ": " + device.name + ", compute capability " +
                 device.compute_capability() + ", " +
                 std::to_string(device.memory_bytes / 1'000'000) + " MB.");
  if (options.runtime.empty()) {
    report.say("libraries", false, "They were not checked: --runtime names libonnxruntime.so.");
    return {};
  }
  CUTOUT_RETURN_IF_ERROR(ort::open_runtime(options.runtime));
  ort::GpuRuntime runtime;
  CUTOUT_RETURN_IF_ERROR(ort::open_device(
      options.provider, *options.device, options.libraries, {},
      options.program.empty() ? ort::OwnKernels::kNone : ort::OwnKernels::kThere, runtime));
  report.say("libraries", true,
             "ONNX Runtime " + ort::runtime_version() + ", CUDA " +
                 std::to_string(runtime.cuda_runtime / 1000) + "." +
                 std::to_string(runtime.cuda_runtime % 1000 / 10) + ", driver " + runtime.driver +
                 (runtime.tensorrt.empty() ? "." : ", TensorRT " + runtime.tensorrt + "."));
  return {};
}

}  // namespace cutout::gpu_check
