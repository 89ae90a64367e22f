#include "ort/failure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <string_view>

namespace cutout::ort {

namespace {

bool has(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

/// The number N of "CUDA failure N:"; 0 without one.
int cuda_failure(std::string_view message) {
  for (const std::string_view kind : {"CUDA failure ", "CUDA error "}) {
    const std::size_t at = message.find(kind);
    if (at == std::string_view::npos) continue;
    int number = 0;
    std::from_chars(message.data() + at + kind.size(), message.data() + message.size(), number);
    if (number > 0) return number;
  }
  return 0;
}

/// The library NAME of "NAME: cannot open shared object file"; empty without one.
std::string missing_library(std::string_view message) {
  const std::size_t end = message.find(": cannot open shared object file");
  if (end == std::string_view::npos) return "";
  const std::string_view before = message.substr(0, end);
  const std::string_view name = before.substr(before.find_last_of(" /:") + 1);
  return name.starts_with("lib") ? std::string(name) : "";
}

/// The "Resize (name)" of a line "  Resize (name)"; empty for another one.
std::string_view node_of(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || begin < 2) return "";
  line = line.substr(begin, line.find_last_not_of(" \r") + 1 - begin);
  const std::size_t operation = line.find(" (");
  const bool whole = operation == line.find(' ') && line.find(')') == line.size() - 1;
  return whole && operation != std::string_view::npos ? line : "";
}

/// The "Gather (name)" of WebGPU's line about an operator without a kernel; empty for another one.
std::string without_kernel(std::string_view line) {
  static constexpr std::string_view kOperator = "kernel not found in registries for Op type: ";
  static constexpr std::string_view kNode = " node name: ";
  const std::size_t at = line.find(kOperator);
  const std::size_t split = line.find(kNode);
  if (at == std::string_view::npos || split == std::string_view::npos) return "";
  const std::size_t begin = at + kOperator.size();
  return std::string(line.substr(begin, split - begin)) + " (" +
         std::string(line.substr(split + kNode.size())) + ")";
}

std::string remedy_for(const std::string& library) {
  if (has(library, {"libnvinfer", "libnvonnxparser"})) {
    return library +
           " of TensorRT is missing. Install TensorRT (docs/gpu.md), or set "
           "CUTOUT_DEVICE=cuda";
  }
  return library +
         " is missing. Run `cutout runtime install cuda`, or add the folder of CUDA's "
         "libraries to LD_LIBRARY_PATH";
}

}  // namespace

Status gpu_failure(const std::string& what, const std::string& message, Code otherwise) {
  // The name of ONNX Runtime's source file comes before.
  const std::size_t said = message.rfind("[ONNXRuntimeError]");
  const auto with = [&](Code code, const std::string& sentence) {
    const std::string detail = said == std::string::npos ? message : message.substr(said);
    return Status(code, what + ": " + sentence + ". [" + detail + "]");
  };
  if (const std::string library = missing_library(message); !library.empty()) {
    if (library.starts_with("libcuda.so") || library.starts_with("libnvidia-ml.so")) {
      return with(Code::kDriver, "the NVIDIA driver is not installed. Install it on the host");
    }
    return with(Code::kProvider, remedy_for(library));
  }
  const int failure = cuda_failure(message);
  if (failure == 2 ||
      has(message, {"CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
                    "Failed to allocate memory for requested buffer",
                    "is smaller than requested bytes", "OutOfMemory", "out of memory"})) {
    return with(Code::kDeviceMemory,
                "the GPU has not enough free memory. End other processes on it (`nvidia-smi`), or "
                "set CUTOUT_WORKERS=1");
  }
  if (failure == 35 || has(message, {"driver version is insufficient"})) {
    return with(Code::kDriver, "the NVIDIA driver is too old for this runtime. Update the driver");
  }
  if (failure == 100 || has(message, {"no CUDA-capable device"})) {
    return with(Code::kDevice, "the NVIDIA driver finds no GPU. Check `nvidia-smi`");
  }
  if (failure == 101 || has(message, {"invalid device ordinal"})) {
    return with(Code::kDevice, "there is no GPU of this number. Change CUTOUT_DEVICE_ID");
  }
  if (failure == 209 || has(message, {"no kernel image is available"})) {
    return with(Code::kDevice,
                "this runtime has no code for this GPU's architecture. Choose another GPU or "
                "another runtime");
  }
  static constexpr std::array kLost = {46, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
  // ONNX Runtime's kernels give the names of these errors.
  if (std::ranges::find(kLost, failure) != kLost.end() ||
      has(message,
          {"cudaErrorDevicesUnavailable", "cudaErrorECCUncorrectable", "cudaErrorIllegalAddress",
           "cudaErrorLaunchTimeout", "cudaErrorContextIsDestroyed", "cudaErrorAssert",
           "cudaErrorHardwareStackError", "cudaErrorIllegalInstruction",
           "cudaErrorMisalignedAddress", "cudaErrorInvalidAddressSpace", "cudaErrorInvalidPc",
           "cudaErrorLaunchFailure"})) {
    return with(Code::kDevice,
                "the GPU has stopped working in this process. Restart the server, and check the "
                "kernel's log for Xid messages");
  }
  if (has(message, {"WebGPU device lost", "Device lost", "is lost"})) {
    return with(Code::kDevice, "the GPU has stopped working in this process. Restart the server");
  }
  if (has(message, {"Failed to get a WebGPU adapter"})) {
    return with(Code::kDriver,
                "no Vulkan driver works here. Install that of the GPU and Vulkan's loader "
                "(libvulkan1), and check `vulkaninfo --summary`");
  }
  if (has(message, {"fallback to CPU EP has been explicitly disabled"})) {
    return with(Code::kProvider,
                "the network has operators that the GPU does not run, and none may run on the CPU "
                "instead. Choose another network with CUTOUT_MODEL, or set CUTOUT_DEVICE=cpu");
  }
  return {otherwise, what + ": " + message};
}

Status cpu_failure(const std::string& what, const std::string& message, Code otherwise) {
  // ONNX Runtime has no error codes for these.
  if (has(message, {"pthread_create failed"})) {
    return {Code::kRuntime,
            what +
                ": the system did not start all of its threads. Raise the limit of threads "
                "(ulimit -u, pids.max), or set CUTOUT_WORKERS and CUTOUT_THREADS to fewer."};
  }
  const bool memory = has(message, {"Failed to allocate memory", "bad_alloc"});
  return {memory ? Code::kOutOfMemory : otherwise, what + ": " + message};
}

std::string nodes_on_cpu(const std::string& log, int limit) {
  // " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2" is followed by one line a node,
  // "  Resize (name)", up to the next provider or another message. WebGPU has a line of its own.
  std::string names;
  bool on_cpu = false;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view text = std::string_view(log).substr(at, end - at);
    at = end + 1;
    if (has(text, {"placed on ["})) {
      on_cpu = has(text, {"placed on [CPUExecutionProvider]"});
    }
    const std::string node = on_cpu ? std::string(node_of(text)) : without_kernel(text);
    if (limit > 0 && !node.empty()) {
      names.append(names.empty() ? "" : ", ").append(node);
      --limit;
    }
  }
  return names;
}

}  // namespace cutout::ort
