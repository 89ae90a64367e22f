#pragma once

#include "cuda/table.h"
#include "stress/cuda/host_executor.h"

namespace cutout::test {

/// The kernels on the calling thread, in the process's memory: what tests run without a GPU.
cuda::Table host_table(Order order);

}  // namespace cutout::test
