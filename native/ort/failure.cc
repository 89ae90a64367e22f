#include "ort/failure.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <regex>
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
int cuda_failure(const std::string& message) {
  static const std::regex pattern("CUDA (?:failure|error) (\\d{1,4})\\b");
  std::smatch found;
  return std::regex_search(message, found, pattern) ? std::stoi(found[1]) : 0;
}

/// The library NAME of "NAME: cannot open shared object file"; empty without one.
std::string missing_library(const std::string& message) {
  static const std::regex pattern(R"((lib[\w.+-]+): cannot open shared object file)");
  std::smatch found;
  return std::regex_search(message, found, pattern) ? found[1].str() : "";
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
    if (library.starts_with("libcuda.so")) {
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
  for (const int code : kLost) {
    if (failure == code) {
      return with(Code::kDevice,
                  "the GPU has stopped working in this process. Restart the server, and check the "
                  "kernel's log for Xid messages");
    }
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
  // "  Resize (name)", up to the next provider or another message.
  static const std::regex line(R"(^\s{2,}(\w+) \(([^)]*)\)\s*$)");
  std::string names;
  bool on_cpu = false;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string text = log.substr(at, end - at);
    at = end + 1;
    std::smatch found;
    if (has(text, {"placed on ["})) {
      on_cpu = has(text, {"placed on [CPUExecutionProvider]"});
    } else if (on_cpu && limit > 0 && std::regex_match(text, found, line)) {
      names += (names.empty() ? "" : ", ") + found[1].str() + " (" + found[2].str() + ")";
      --limit;
    }
  }
  return names;
}

}  // namespace cutout::ort
