#include "ort/gpu_runtime.h"

#include <dlfcn.h>

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "ort/device_memory_budget.h"
#include "ort/failure.h"
#include "ort/provider.h"
#include "ort/rtx.h"
#include "ort/session.h"

namespace cutout::ort {

namespace {

Status preload(const std::string& what, const std::vector<std::string>& libraries) {
  for (const std::string& file : libraries) {
    // Never closed: the provider uses them until the process ends.
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
    const char* const reason = dlerror();
    return gpu_failure(what, reason != nullptr ? reason : file, Code::kProvider);
  }
  return {};
}

/// The function `name` of the first of these libraries that has it; `mode` says whether a library
/// that is not open yet is opened.
template <typename Function, std::size_t n>
Function function_of(const std::array<const char*, n>& libraries, int mode, const char* name) {
  for (const char* library : libraries) {
    void* const opened = dlopen(library, RTLD_NOW | mode);
    if (opened == nullptr) continue;
    if (void* const found = dlsym(opened, name)) return reinterpret_cast<Function>(found);
  }
  return nullptr;
}

/// Version of the CUDA runtime that the provider has loaded; 0 when it has loaded none.
int cuda_runtime_version() {
  const auto get = function_of<int (*)(int*)>(kCudaRuntimes, RTLD_NOLOAD, "cudaRuntimeGetVersion");
  int version = 0;
  return get != nullptr && get(&version) == 0 ? version : 0;
}

std::string tensorrt_version() {
  static constexpr std::array kLibraries = {"libnvinfer.so.10", "libnvinfer.so.11"};
  const auto get = function_of<int (*)()>(kLibraries, RTLD_LOCAL, "getInferLibVersion");
  if (get == nullptr) return {};
  const int version = get();  // 10000 * major + 100 * minor + patch
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string driver_version(const DeviceProperties& device) {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  if (file >> version) return version;
  return "CUDA " + std::to_string(device.driver_cuda);
}

/// An ONNX file of one ReLU.
constexpr std::string_view kSmallestNetwork =
    "\x08\x08\x3a\x33\x0a\x0c\x0a\x01\x78\x12\x01\x79\x22\x04\x52\x65\x6c\x75\x12\x01"
    "\x67\x5a\x0f\x0a\x01\x78\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01\x62\x0f"
    "\x0a\x01\x79\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01\x42\x02\x10\x0d";

/// Opens a session by WebGPU, which asks Vulkan for the GPU.
Status try_webgpu(const std::string& what, Ort::SessionOptions& options) {
  CUTOUT_RETURN_IF_ERROR(append_provider(Provider::kWebGpu, {}, options));
  const auto turn = take_turn(Provider::kWebGpu);
  return guarded(true, Code::kRuntime, what, [&]() -> Status {
    const Ort::Session session(environment(), kSmallestNetwork.data(), kSmallestNetwork.size(),
                               options);
    return {};
  });
}

}  // namespace

Status open_device(Provider provider, int number, const std::vector<std::string>& libraries,
                   const std::string& plugin, OwnKernels own, GpuRuntime& runtime) {
  const std::string what = cannot_be_used(provider);
  // First without the machine: a build for the CPU is the likeliest reason.
  GpuOptions gpu;
  gpu.device_id = number;
  Ort::SessionOptions options;
  CUTOUT_RETURN_IF_ERROR(preload(what, libraries));
  GpuRuntime found;
  if (provider == Provider::kWebGpu) {
    if (number != 0) {
      return {Code::kDevice,
              what +
                  ": WebGPU takes the first GPU of the Vulkan drivers, so CUTOUT_DEVICE_ID can "
                  "only be 0. VK_DRIVER_FILES names the driver of another one."};
    }
    runtime.device.name = "first GPU of Vulkan";
    return try_webgpu(what, options);
  }
  const Status driver = find_device(what, number, found.device);
  // The plugin cannot be loaded without the driver.
  if (provider == Provider::kTensorRtRtx && !driver.ok()) return driver;
  const Status appended = provider == Provider::kTensorRtRtx
                              ? open_rtx(plugin, found)
                              : append_provider(provider, gpu, options);
  // Without a driver the provider fails too, with a less useful message.
  const bool alone = own == OwnKernels::kThere && appended.code() == Code::kProvider;
  if (appended.code() == Code::kProvider && !alone) return appended;
  CUTOUT_RETURN_IF_ERROR(driver);
  if (alone)
    found.provider = appended;
  else
    CUTOUT_RETURN_IF_ERROR(appended);
  const bool tensorrt = provider != Provider::kCuda;
  found.cuda_runtime = cuda_runtime_version();
  CUTOUT_RETURN_IF_ERROR(check_device(what, found.device, found.cuda_runtime, tensorrt));
  if (provider == Provider::kTensorRt) found.tensorrt = tensorrt_version();
  found.driver = driver_version(found.device);
  runtime = std::move(found);
  return {};
}

}  // namespace cutout::ort
