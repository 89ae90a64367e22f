#include "ort/rtx.h"

#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "ort/provider.h"
#include "ort/session.h"

namespace cutout::ort {

namespace {

constexpr const char* kRtxProvider = "NvTensorRTRTXExecutionProvider";

std::mutex registration;
std::string registered;                     // the library; guarded by the mutex
std::map<int, Ort::ConstEpDevice> devices;  // that were found, by number; likewise

std::string value_of(const Ort::ConstKeyValuePairs& pairs, const char* key) {
  const char* const value = pairs.GetValue(key);
  return value != nullptr ? value : "";
}

}  // namespace

Status open_rtx(const std::string& library, GpuRuntime& runtime) {
  const std::string what = cannot_be_used(Provider::kTensorRtRtx);
  if (std::error_code ignored; !std::filesystem::is_regular_file(library, ignored)) {
    return {Code::kProvider,
            what + ": there is no file '" + library + "'. Run `cutout runtime install tensorrt`."};
  }
  return guarded(true, Code::kProvider, what, [&]() -> Status {
    const std::lock_guard lock(registration);
    if (registered.empty()) {
      // The provider takes the name under which it is registered.
      environment().RegisterExecutionProviderLibrary(kRtxProvider, library);
      registered = library;
    } else if (registered != library) {
      return {Code::kRuntime, what + ": it is open already from '" + registered + "'."};
    }
    const DeviceProperties& gpu = runtime.device;
    // The driver and ONNX Runtime number GPUs in different orders and write addresses in different
    // cases.
    const std::vector<Ort::ConstEpDevice> all = environment().GetEpDevices();
    const auto found = std::ranges::find_if(all, [&](const Ort::ConstEpDevice& device) {
      return std::string(device.EpName()) == kRtxProvider &&
             std::ranges::equal(value_of(device.Device().Metadata(), "pci_bus_id"), gpu.pci, {},
                                tolower, tolower);
    });
    if (found == all.end()) {
      return {Code::kDevice, what + ": TensorRT for RTX does not offer GPU " +
                                 std::to_string(gpu.number) + " (" + gpu.name +
                                 ", compute capability " + gpu.compute_capability() +
                                 "). Choose another GPU with CUTOUT_DEVICE_ID, or set "
                                 "CUTOUT_DEVICE=cuda."};
    }
    devices.insert_or_assign(gpu.number, *found);
    runtime.tensorrt = "for RTX, provider " + value_of(found->EpMetadata(), "version");
    return {};
  });
}

void append_engine(const NetworkOptions& options, Ort::SessionOptions& settings,
                   std::string& path) {
  std::unordered_map<std::string, std::string> given;
  const GpuOptions& gpu = options.gpu;
  if (gpu.memory_limit > 0) given["nv_max_workspace_size"] = std::to_string(gpu.memory_limit);
  if (!gpu.kernel_cache.empty()) given["nv_runtime_cache_path"] = gpu.kernel_cache;
  const std::string kept = gpu.engine_cache.empty() ? "" : gpu.engine_cache + "/engine.onnx";
  if (!kept.empty() && std::filesystem::exists(kept)) {
    path = kept;
  } else {
    // It is opened for the name of its input, and whether its batch is free.
    Ort::SessionOptions plain;
    plain.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
    const Ort::Session network(environment(), path.c_str(), plain);
    const std::string name =
        network.GetInputNameAllocated(0, Ort::AllocatorWithDefaultOptions()).get();
    const bool fixed = network.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape().at(0) > 0;
    const auto input = [&](int batch) {
      return name + ":" + std::to_string(batch) + "x3x" + std::to_string(options.height) + "x" +
             std::to_string(options.width);
    };
    const int largest = fixed || options.batches.empty() ? 1 : options.batches.back();
    given["nv_profile_min_shapes"] = input(1);
    given["nv_profile_opt_shapes"] = given["nv_profile_max_shapes"] = input(largest);
    if (!kept.empty()) {
      settings.AddConfigEntry(kOrtSessionOptionEpContextEnable, "1");
      settings.AddConfigEntry(kOrtSessionOptionEpContextFilePath, kept.c_str());
      settings.AddConfigEntry(kOrtSessionOptionEpContextEmbedMode, "1");
    }
  }
  settings.AddConfigEntry(kOrtSessionOptionsDisableCPUEPFallback, "1");
  const std::lock_guard lock(registration);
  settings.AppendExecutionProvider_V2(environment(), {devices.at(gpu.device_id)}, given);
}

}  // namespace cutout::ort
