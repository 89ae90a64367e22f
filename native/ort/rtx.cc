#include "ort/rtx.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <vector>

#include "ort/provider.h"
#include "ort/session.h"

namespace cutout::ort {

namespace {

constexpr const char* kName = "NvTensorRTRTXExecutionProvider";

std::mutex mutex;
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
    const std::lock_guard lock(mutex);
    if (registered.empty()) {
      // The provider takes the name under which it is registered.
      environment().RegisterExecutionProviderLibrary(kName, library);
      registered = library;
    } else if (registered != library) {
      return {Code::kRuntime, what + ": it is open already from '" + registered + "'."};
    }
    const DeviceProperties& gpu = runtime.device;
    // The driver and ONNX Runtime number GPUs in different orders and write addresses in different
    // cases.
    const std::vector<Ort::ConstEpDevice> all = environment().GetEpDevices();
    const auto found = std::ranges::find_if(all, [&](const Ort::ConstEpDevice& device) {
      return std::string(device.EpName()) == kName &&
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

void append_rtx(const GpuOptions& gpu, Ort::SessionOptions& options) {
  const std::lock_guard lock(mutex);
  const ProviderOptions given = rtx_options(gpu);
  options.AppendExecutionProvider_V2(environment(), {devices.at(gpu.device_id)},
                                     {given.begin(), given.end()});
}

}  // namespace cutout::ort
