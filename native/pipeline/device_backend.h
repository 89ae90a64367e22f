#pragma once

#include <memory>

#include "core/thread_pool.h"
#include "pipeline/backend.h"
#include "pipeline/device.h"

namespace cutout {

/// The kernels of native/cuda on a device. The image is copied there once and comes back once, a
/// mask goes there once; what lies between the stages stays there. All steps run on the device.
/// Each call has a stream of its own and waits for it. Both are used until the last call has
/// returned and the last tensor, image and matte is gone.
///
/// Its results are those of the CPU's backend, bit for bit, but for the sigmoid on a GPU
/// (cuda/table.h).
std::unique_ptr<Backend> make_device_backend(Device& device, ThreadPool& pool);

}  // namespace cutout
