#include "ort/provider.h"

#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ort/failure.h"
#include "ort/session.h"

namespace cutout::ort {

namespace {

/// Names and values as the C interface takes them; borrowed from `options`.
struct Pointers {
  explicit Pointers(const ProviderOptions& options) {
    for (const auto& [key, value] : options) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
  std::vector<const char*> keys;
  std::vector<const char*> values;
};

/// The options of a GPU provider with these names and values, owned through ONNX Runtime's C
/// interface.
template <typename Options, typename Names>
auto options_of(const ProviderOptions& given, OrtStatus* (*create)(Options**),
                OrtStatus* (*update)(Options*, Names, Names, std::size_t),
                void (*release)(Options*)) {
  Options* made = nullptr;
  Ort::ThrowOnError(create(&made));
  std::unique_ptr<Options, void (*)(Options*)> options(made, release);
  const Pointers all(given);
  Ort::ThrowOnError(update(made, all.keys.data(), all.values.data(), all.keys.size()));
  return options;
}

}  // namespace

std::string cannot_be_used(Provider provider) {
  const std::string name = provider == Provider::kWebGpu ? "WebGPU"
                           : provider == Provider::kCuda ? "CUDA"
                                                         : "TensorRT";
  return name + " was asked for and cannot be used";
}

std::unique_lock<std::mutex> take_turn(Provider provider) {
  static std::mutex of_webgpu;
  return provider == Provider::kWebGpu ? std::unique_lock(of_webgpu)
                                       : std::unique_lock<std::mutex>();
}

Status append_provider(Provider provider, const GpuOptions& gpu, Ort::SessionOptions& options) {
  if (provider == Provider::kCpu) return {};
  const bool tensorrt = provider == Provider::kTensorRt;
  const std::string what = cannot_be_used(provider);
  return guarded(true, Code::kRuntime, what, [&]() -> Status {
    // ONNX Runtime logs while it loads a provider, and fails without the environment's logger.
    environment();
    options.AddConfigEntry(kOrtSessionOptionsDisableCPUEPFallback, "1");
    const std::vector<std::string> built_in = Ort::GetAvailableProviders();
    const bool webgpu = provider == Provider::kWebGpu;
    const std::string wanted = webgpu     ? "WebGpuExecutionProvider"
                               : tensorrt ? "TensorrtExecutionProvider"
                                          : "CUDAExecutionProvider";
    if (std::ranges::find(built_in, wanted) == built_in.end()) {
      return {Code::kProvider,
              what + ": this ONNX Runtime library was built without it. " +
                  (webgpu ? "That of the npm package for x86-64 has it: unset CUTOUT_RUNTIME."
                          : "Run `cutout runtime install cuda`, or name a GPU build of the library "
                            "in CUTOUT_RUNTIME.")};
    }
    if (webgpu) {
      // Without integers of 64 bits, computed shapes are left to the CPU. Where the device ends
      // with its last session, the third opening of a large network has ended the process.
      options.AppendExecutionProvider("WebGPU", {{"enableInt64", "1"}, {"preserveDevice", "1"}});
      return {};
    }
    const OrtApi& api = Ort::GetApi();
    if (tensorrt) {
      options.AppendExecutionProvider_TensorRT_V2(
          *options_of(tensorrt_options(gpu), api.CreateTensorRTProviderOptions,
                      api.UpdateTensorRTProviderOptions, api.ReleaseTensorRTProviderOptions));
    }
    // With TensorRT, CUDA runs the operators that TensorRT does not support.
    options.AppendExecutionProvider_CUDA_V2(
        *options_of(cuda_options(gpu), api.CreateCUDAProviderOptions, api.UpdateCUDAProviderOptions,
                    api.ReleaseCUDAProviderOptions));
    return {};
  });
}

}  // namespace cutout::ort
