#pragma once

#include <memory>

#include "core/thread_pool.h"
#include "pipeline/backend.h"
#include "pipeline/device.h"

namespace cutout {

/// The kernels of native/cuda on a device. The image is copied there once; its edge comes back, or
/// the whole image where that does not suffice (edge_runs.h); a mask goes there once; what lies
/// between the stages stays there. All steps run on the device, in order on a stream of the
/// backend's, and are waited for where something on the host or another stream needs what they
/// make: the network's input, its answer, and the image, which goes to the caller's pixels when all
/// of it has come back.
///
/// Its results are those of the CPU's backend, bit for bit, but for the sigmoid on a GPU
/// (cuda/table.h).
std::unique_ptr<Backend> make_device_backend(Device& device, ThreadPool& pool);

}  // namespace cutout
