#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device_memory.h"

namespace cutout::ort {

/// Where networks run.
enum class Provider {
  kCpu,
  kCuda,
  kTensorRt,
  kTensorRtRtx,  // TensorRT for RTX, a plugin (ort/rtx.h)
  kWebGpu,
};

/// Whether the network alone runs on the GPU: ONNX Runtime copies its input and output.
constexpr bool copies_values(Provider provider) {
  return provider == Provider::kTensorRtRtx || provider == Provider::kWebGpu;
}

class DeviceMemoryBudget;

/// What a GPU provider is given for one network.
struct GpuOptions {
  int device_id = 0;
  /// Bytes of device memory that one session may take at most; 0: no limit.
  std::uint64_t memory_limit = 0;
  /// Whether TensorRT may compute in float16. A file with values in float16 needs it.
  bool fp16 = false;
  /// Folder of TensorRT's engine and timing cache, valid for this network, library, driver and GPU
  /// only; empty: an engine is built at each start.
  std::string engine_cache;
  /// Folder of the kernels that TensorRT for RTX compiles for the GPU when they are first used;
  /// empty: they are compiled at each start.
  std::string kernel_cache;
};

struct NetworkOptions {
  std::string path;
  /// Where the network is saved as ONNX Runtime optimised it, with its weights in `save_to`.data;
  /// empty: it is not saved. Such a file opens without being optimised again, and its weights are
  /// mapped instead of read; it is valid for this library on this processor only.
  std::string save_to;
  /// Instruction set of Cutout's operators, one of low_precision::kernels(); empty: without them,
  /// and a file that has them cannot be opened.
  std::string operators;
  int width = 0;  // input size in pixels
  int height = 0;
  Provider provider = Provider::kCpu;
  GpuOptions gpu;
  int intra_op_threads = 1;  // of the session's pool, the calling thread included
  int slots = 1;             // concurrent runs
  int outputs = 1;           // number of outputs that are fetched, from output 0 on
  /// Whether the latency of single runs is measured too where there are no batches.
  bool timed = false;
  /// Sizes of batches that are opened beside single runs, ascending from 2 (Network::run_batch).
  std::vector<int> batches;
  /// Called by Network::open() before it opens the session of a size, which may take minutes where
  /// the provider compiles the network. Must not throw.
  std::function<void(int batch)> opening;
  /// What sessions take of the device's memory is reserved here; null: it is not counted.
  std::shared_ptr<DeviceMemoryBudget> budget;
  /// Runs with bound inputs and outputs, as those on a device, where that is always done.
  bool bind = false;
  /// Where inputs and outputs of runs lie, on the provider's device; outlives the network. Without,
  /// they lie in this process's memory.
  DeviceMemory* memory = nullptr;
  /// Buffers of a slot exist from Network::open_slot() to close_slot() only, so that their memory
  /// can be returned in between. Not for values on a device or with batches.
  bool lend_buffers = false;
};

/// Names and values of a provider's options.
using ProviderOptions = std::vector<std::pair<std::string, std::string>>;

ProviderOptions cuda_options(const GpuOptions& options);
ProviderOptions tensorrt_options(const GpuOptions& options);

}  // namespace cutout::ort
