#include "ort/options.h"

namespace cutout::ort {

ProviderOptions cuda_options(const GpuOptions& options) {
  // The input size is fixed: exact allocations, and a fast search for algorithms.
  ProviderOptions all{{"device_id", std::to_string(options.device_id)},
                      {"arena_extend_strategy", "kSameAsRequested"},
                      {"cudnn_conv_algo_search", "HEURISTIC"}};
  if (options.memory_limit > 0) {
    all.emplace_back("gpu_mem_limit", std::to_string(options.memory_limit));
  }
  return all;
}

ProviderOptions tensorrt_options(const GpuOptions& options) {
  ProviderOptions all{{"device_id", std::to_string(options.device_id)},
                      {"trt_fp16_enable", options.fp16 ? "1" : "0"}};
  // Sums over channels overflow float16.
  if (options.fp16) all.emplace_back("trt_layer_norm_fp32_fallback", "1");
  // What its choice of algorithms may take beside the weights.
  if (options.memory_limit > 0) {
    all.emplace_back("trt_max_workspace_size", std::to_string(options.memory_limit));
  }
  if (!options.engine_cache.empty()) {
    all.emplace_back("trt_engine_cache_enable", "1");
    all.emplace_back("trt_engine_cache_path", options.engine_cache);
    all.emplace_back("trt_timing_cache_enable", "1");
    all.emplace_back("trt_timing_cache_path", options.engine_cache);
  }
  return all;
}

}  // namespace cutout::ort
