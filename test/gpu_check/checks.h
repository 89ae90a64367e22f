#pragma once

#include "core/status.h"
#include "gpu_check/options.h"
#include "gpu_check/report.h"

namespace cutout::gpu_check {

/// Opens driver and libraries. kDriver, kDevice or kProvider when there is no GPU to be checked.
Status open_machine(const Options& options, Report& report);

/// Every kernel of native/cuda against the CPU, in random cases.
void check_kernels(const Options& options, Report& report);

/// The network in each size of batch: against the CPU, whether all values are finite, how fast it
/// is, and how long images wait for a batch under load.
void check_network(const Options& options, Report& report);

/// The engine as requests use it: mattes of 1, 12 and 50 megapixels against those of the engine on
/// the CPU, alone and two full batches at a time, and jobs that are cancelled.
void check_engine(const Options& options, Report& report);

/// What the engine says when the device stops working, by a wrong access after which CUDA serves
/// this process no longer. The last part.
void check_lost_device(const Options& options, Report& report);

}  // namespace cutout::gpu_check
