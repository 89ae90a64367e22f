#include "ort/provider.h"

#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ort/environment.h"
#include "ort/failure.h"

namespace cutout::ort {

namespace {

/// Options of a GPU provider, owned through ONNX Runtime's C interface.
template <typename Options, typename Release>
using Owned = std::unique_ptr<Options, Release>;

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

void append_cuda(const ProviderOptions& given, Ort::SessionOptions& options) {
  const OrtApi& api = Ort::GetApi();
  OrtCUDAProviderOptionsV2* made = nullptr;
  Ort::ThrowOnError(api.CreateCUDAProviderOptions(&made));
  const Owned<OrtCUDAProviderOptionsV2, decltype(api.ReleaseCUDAProviderOptions)> cuda(
      made, api.ReleaseCUDAProviderOptions);
  const Pointers all(given);
  Ort::ThrowOnError(api.UpdateCUDAProviderOptions(cuda.get(), all.keys.data(), all.values.data(),
                                                  all.keys.size()));
  options.AppendExecutionProvider_CUDA_V2(*cuda);
}

void append_tensorrt(const ProviderOptions& given, Ort::SessionOptions& options) {
  const OrtApi& api = Ort::GetApi();
  OrtTensorRTProviderOptionsV2* made = nullptr;
  Ort::ThrowOnError(api.CreateTensorRTProviderOptions(&made));
  const Owned<OrtTensorRTProviderOptionsV2, decltype(api.ReleaseTensorRTProviderOptions)> trt(
      made, api.ReleaseTensorRTProviderOptions);
  const Pointers all(given);
  Ort::ThrowOnError(api.UpdateTensorRTProviderOptions(trt.get(), all.keys.data(), all.values.data(),
                                                      all.keys.size()));
  options.AppendExecutionProvider_TensorRT_V2(*trt);
}

}  // namespace

std::string cannot_be_used(Provider provider) {
  return (provider == Provider::kTensorRt ? std::string("TensorRT") : std::string("CUDA")) +
         " was asked for and cannot be used";
}

Status append_provider(Provider provider, const GpuOptions& gpu, Ort::SessionOptions& options) {
  if (provider == Provider::kCpu) return {};
  const bool tensorrt = provider == Provider::kTensorRt;
  const std::string what = cannot_be_used(provider);
  try {
    // ONNX Runtime logs while it loads a provider, and fails without the environment's logger.
    environment();
    const std::vector<std::string> built_in = Ort::GetAvailableProviders();
    const std::string wanted = tensorrt ? "TensorrtExecutionProvider" : "CUDAExecutionProvider";
    if (std::ranges::find(built_in, wanted) == built_in.end()) {
      return {Code::kProvider,
              what +
                  ": this ONNX Runtime library was built without it. Run `cutout runtime "
                  "install cuda`, or name a GPU build of the library in CUTOUT_RUNTIME."};
    }
    if (tensorrt) append_tensorrt(tensorrt_options(gpu), options);
    // With TensorRT, CUDA runs the operators that TensorRT does not support.
    append_cuda(cuda_options(gpu), options);
    options.AddConfigEntry(kOrtSessionOptionsDisableCPUEPFallback, "1");
    return {};
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, what + ": out of memory."};
  } catch (const std::exception& error) {
    return gpu_failure(what, first_line(error.what()), Code::kRuntime);
  }
}

}  // namespace cutout::ort
