#include "ort/driver.h"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace cutout::ort {

namespace {

/// Values of CUresult and CUdevice_attribute (CUDA Driver API), which do not change.
constexpr int kSuccess = 0;
constexpr int kStubLibrary = 34;
constexpr int kNoDevice = 100;
constexpr int kDeviceUnavailable = 46;
constexpr int kVersionMismatch = 803;
constexpr int kCompatibilityUnsupported = 804;
constexpr int kComputeMajor = 75;
constexpr int kComputeMinor = 76;

Status failure_of_init(const std::string& what, int result) {
  switch (result) {
    case kNoDevice:
      return {Code::kDevice,
              what +
                  ": the NVIDIA driver finds no GPU. Check `nvidia-smi` on the host; a container "
                  "needs `--gpus all` or a device plugin, and NVIDIA's container toolkit."};
    case kDeviceUnavailable:
      return {Code::kDevice, what +
                                 ": all GPUs are in use by processes that do not share them. "
                                 "Check the compute mode with `nvidia-smi -q`."};
    case kStubLibrary:
      return {Code::kDriver, what +
                                 ": libcuda.so.1 is the stub of the CUDA toolkit, not a driver. "
                                 "Remove its folder from LD_LIBRARY_PATH."};
    case kVersionMismatch:
      return {Code::kDriver, what +
                                 ": the kernel module and the library of the NVIDIA driver have "
                                 "different versions. Restart the machine after the update of "
                                 "the driver."};
    case kCompatibilityUnsupported:
      return {Code::kDriver, what +
                                 ": this GPU does not support CUDA's compatibility libraries. "
                                 "Remove them, or update the NVIDIA driver."};
    default:
      return {Code::kDriver, what + ": the NVIDIA driver does not start (CUDA error " +
                                 std::to_string(result) +
                                 "). Check `nvidia-smi` and the kernel's log."};
  }
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Status find_device(const std::string& what, int number, DeviceProperties& device,
                   const char* library) {
  // Never closed, as ONNX Runtime uses it too.
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return {Code::kDriver,
            what +
                ": the NVIDIA driver is not installed (libcuda.so.1 cannot be opened). Install "
                "it on the host; a container also needs NVIDIA's container toolkit and `--gpus "
                "all`."};
  }
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;
  if (!find(opened, "cuInit", init) || !find(opened, "cuDriverGetVersion", driver_version) ||
      !find(opened, "cuDeviceGetCount", device_count) || !find(opened, "cuDeviceGet", device_get) ||
      !find(opened, "cuDeviceGetName", device_name) ||
      !find(opened, "cuDeviceGetAttribute", device_attribute) ||
      !find(opened, "cuDeviceTotalMem_v2", device_memory)) {
    return {Code::kDriver, what + ": libcuda.so.1 is no driver of NVIDIA, functions are missing."};
  }
  if (const int result = init(0); result != kSuccess) return failure_of_init(what, result);
  int count = 0;
  if (const int result = device_count(&count); result != kSuccess || count < 1) {
    return failure_of_init(what, result == kSuccess ? kNoDevice : result);
  }
  if (number >= count) {
    return {Code::kDevice, what + ": there is no GPU " + std::to_string(number) +
                               "; the driver numbers them from 0 to " + std::to_string(count - 1) +
                               ". Change CUTOUT_DEVICE_ID or CUDA_VISIBLE_DEVICES."};
  }
  DeviceProperties found;
  found.number = number;
  int handle = 0;
  std::array<char, 256> name{};
  std::array<char, 32> address{};
  std::size_t memory = 0;
  int result = driver_version(&found.driver_cuda);
  if (result == kSuccess) result = device_get(&handle, number);
  if (result == kSuccess) {
    result = device_name(name.data(), static_cast<int>(name.size()) - 1, handle);
  }
  if (result == kSuccess) result = device_attribute(&found.compute_major, kComputeMajor, handle);
  if (result == kSuccess) result = device_attribute(&found.compute_minor, kComputeMinor, handle);
  if (result == kSuccess) result = device_memory(&memory, handle);
  if (result != kSuccess) return failure_of_init(what, result);
  int (*device_address)(char*, int, int) = nullptr;
  if (find(opened, "cuDeviceGetPCIBusId", device_address) &&
      device_address(address.data(), static_cast<int>(address.size()) - 1, handle) == kSuccess) {
    found.pci = address.data();
  }
  found.name = name.data();
  found.memory_bytes = memory;
  device = std::move(found);
  return {};
}

std::vector<std::string> compute_capabilities(const char* library) {
  std::vector<std::string> all;
  DeviceProperties device;
  while (find_device("", static_cast<int>(all.size()), device, library).ok())
    all.push_back(device.compute_capability());
  return all;
}

Status check_device(const std::string& what, const DeviceProperties& device, int cuda_runtime,
                    bool tensorrt) {
  // Within a major version, a runtime runs on every driver of that version (CUDA's minor version
  // compatibility).
  if (device.driver_cuda / 1000 < cuda_runtime / 1000) {
    const int major = cuda_runtime / 1000;
    const std::string driver = major == 13   ? " (driver 580 or newer)"
                               : major == 12 ? " (driver 525 or newer)"
                                             : "";
    return {Code::kDriver, what + ": the NVIDIA driver is too old. It supports CUDA " +
                               cuda_version(device.driver_cuda) + ", this runtime needs " +
                               std::to_string(major) + ".0" + driver +
                               ". Update the driver of the host."};
  }
  // CUDA 13 and TensorRT 10 have no code for GPUs before Turing.
  const int needed = tensorrt || cuda_runtime >= 13000 ? 75 : 50;
  const int given = device.compute_major * 10 + device.compute_minor;
  if (given < needed) {
    return {Code::kDevice,
            what + ": GPU " + std::to_string(device.number) + " (" + device.name +
                ") has compute capability " + device.compute_capability() + ", and " +
                std::to_string(needed / 10) + "." + std::to_string(needed % 10) +
                " or newer is needed. Choose another GPU with CUTOUT_DEVICE_ID, or set "
                "CUTOUT_DEVICE=cpu."};
  }
  return {};
}

}  // namespace cutout::ort
