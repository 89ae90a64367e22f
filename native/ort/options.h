#pragma once

#include <string>

namespace cutout::ort {

/// Where networks run.
enum class Provider { kCpu, kCuda, kTensorRt };

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
  int device_id = 0;         // of the GPU
  int intra_op_threads = 1;  // of the session's pool, the calling thread included
  int slots = 1;             // concurrent runs
  int outputs = 1;           // number of outputs that are fetched, from output 0 on
};

}  // namespace cutout::ort
