#include "ort/provider.h"

#include <algorithm>
#include <memory>
#include <string>

#include "ort/environment.h"

namespace cutout::ort {

namespace {

/// Options of a GPU provider, owned through ONNX Runtime's C interface.
template <typename Options, typename Release>
using Owned = std::unique_ptr<Options, Release>;

void append_cuda(const char* device, Ort::SessionOptions& options) {
  const OrtApi& api = Ort::GetApi();
  OrtCUDAProviderOptionsV2* made = nullptr;
  Ort::ThrowOnError(api.CreateCUDAProviderOptions(&made));
  const Owned<OrtCUDAProviderOptionsV2, decltype(api.ReleaseCUDAProviderOptions)> cuda(
      made, api.ReleaseCUDAProviderOptions);
  // The input size is fixed: exact allocations, and a fast search for algorithms.
  const char* const keys[] = {"device_id", "arena_extend_strategy", "cudnn_conv_algo_search"};
  const char* const values[] = {device, "kSameAsRequested", "HEURISTIC"};
  Ort::ThrowOnError(api.UpdateCUDAProviderOptions(cuda.get(), keys, values, std::size(keys)));
  options.AppendExecutionProvider_CUDA_V2(*cuda);
}

void append_tensorrt(const char* device, Ort::SessionOptions& options) {
  const OrtApi& api = Ort::GetApi();
  OrtTensorRTProviderOptionsV2* made = nullptr;
  Ort::ThrowOnError(api.CreateTensorRTProviderOptions(&made));
  const Owned<OrtTensorRTProviderOptionsV2, decltype(api.ReleaseTensorRTProviderOptions)> trt(
      made, api.ReleaseTensorRTProviderOptions);
  const char* const keys[] = {"device_id"};
  const char* const values[] = {device};
  Ort::ThrowOnError(api.UpdateTensorRTProviderOptions(trt.get(), keys, values, std::size(keys)));
  options.AppendExecutionProvider_TensorRT_V2(*trt);
}

}  // namespace

Status append_provider(Provider provider, int device_id, Ort::SessionOptions& options) {
  if (provider == Provider::kCpu) return {};
  const bool tensorrt = provider == Provider::kTensorRt;
  const std::string name = tensorrt ? "TensorRT" : "CUDA";
  const std::string what = name + " was asked for and cannot be used";
  return guarded(Code::kRuntime, what, [&]() -> Status {
    const std::vector<std::string> built_in = Ort::GetAvailableProviders();
    const std::string wanted = tensorrt ? "TensorrtExecutionProvider" : "CUDAExecutionProvider";
    if (std::ranges::find(built_in, wanted) == built_in.end()) {
      return {Code::kRuntime, what + ": this ONNX Runtime library was built without it."};
    }
    const std::string device = std::to_string(device_id);
    if (tensorrt) append_tensorrt(device.c_str(), options);
    // With TensorRT, CUDA runs the operators that TensorRT does not support.
    append_cuda(device.c_str(), options);
    return {};
  });
}

}  // namespace cutout::ort
