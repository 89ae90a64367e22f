#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "low_precision/kernels.h"
#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

/// Does `work(0)` to `work(count - 1)`, on whichever threads and in whichever order, and returns
/// when all are done. `work` does not throw.
using Parallel =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;

/// What one run reads and writes. Everything is borrowed.
struct RunBuffers {
  std::span<const float> input;           // [channels, height, width]
  std::vector<std::span<float>> outputs;  // [channels, height, width] of each
  std::span<std::uint8_t> memory;         // bytes_of_run(), aligned to Plan::kAlignment
};

/// Memory of a run: that of the plan and the transformed weights of one convolution or of a part of
/// its output channels.
std::size_t bytes_of_run(const Program& program, const Plan& plan, const Kernel& kernel);

/// Runs the program on one input. `token` may be null; a stopped one ends the run between two parts
/// of an operation with its reason.
Status run(const Program& program, const Plan& plan, const Kernel& kernel,
           const RunBuffers& buffers, const Parallel& parallel, const CancelToken* token);

}  // namespace cutout::low_precision
