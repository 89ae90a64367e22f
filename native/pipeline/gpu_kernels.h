#pragma once

#include <string>

#include "core/status.h"
#include "cuda/table.h"

namespace cutout {

/// The kernels for a GPU of the library `file`. Null, with a line of the log that says so, where
/// there is no such file: the steps around the network then run on the CPU. kProvider for a file
/// that cannot be used.
Status open_gpu_kernels(const std::string& file, const cuda::Table*& kernels);

}  // namespace cutout
