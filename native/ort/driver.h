#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace cutout::ort {

/// A GPU as NVIDIA's driver describes it.
struct DeviceProperties {
  int number = 0;
  std::string name;
  int compute_major = 0;  // compute capability, for example 9.0
  int compute_minor = 0;
  std::uint64_t memory_bytes = 0;
  std::string pci;  // address, for example "0000:01:00.0"; empty if it is not known
  /// Newest CUDA that the driver supports: 1000 * major + 10 * minor.
  int driver_cuda = 0;

  /// As a text; empty for a GPU without one.
  [[nodiscard]] std::string compute_capability() const {
    if (compute_major == 0) return {};
    return std::to_string(compute_major) + "." + std::to_string(compute_minor);
  }
};

/// The number of a CUDA version (1000 * major + 10 * minor) as a text; empty for 0.
inline std::string cuda_version(int cuda) {
  if (cuda == 0) return {};
  return std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
}

/// File of the driver's library, for dlopen.
inline constexpr const char* kDriverLibrary = "libcuda.so.1";

/// Asks the driver for the GPU `number`. kDriver without a usable driver, kDevice without a GPU of
/// that number. `what` begins the message. Makes no CUDA context, so that no device memory is
/// taken.
Status find_device(const std::string& what, int number, DeviceProperties& device,
                   const char* library = kDriverLibrary);

/// The compute capabilities of the GPUs that the driver shows to this process; empty without a
/// usable driver.
std::vector<std::string> compute_capabilities(const char* library = kDriverLibrary);

/// Whether the device can run code of a CUDA runtime of this version (1000 * major + 10 * minor).
/// kDriver for a driver that is too old, kDevice for a GPU that is. `tensorrt`: for TensorRT too.
Status check_device(const std::string& what, const DeviceProperties& device, int cuda_runtime,
                    bool tensorrt);

}  // namespace cutout::ort
