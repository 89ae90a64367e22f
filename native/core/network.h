#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace cutout {

class DeviceCall;
/// Queues work on the stream of a call (pipeline/device.h).
using WorkOnDevice = std::function<void(DeviceCall&)>;

/// A number of images in one run, and how long that took when the network was opened.
struct BatchTiming {
  std::size_t size = 1;
  double ms = 0;
};

/// A network that predicts one plane for an image, and the buffers of its runs: by ONNX Runtime
/// (ort/network.h), or by Cutout's own kernels on a GPU (pipeline/gpu_network.h). All slots share
/// the weights; each owns one input and one output.
///
/// | what   | layout                                                                              |
/// |--------|-------------------------------------------------------------------------------------|
/// | input  | float32 [1, 3, height, width]                                                       |
/// | output | float32, one plane, whose height and width may differ from the input's              |
/// | memory | this process's, or a device's                                                       |
/// | threads| different slots may run at the same time, one slot on one thread                    |
class Network {
 public:
  virtual ~Network() = default;

  /// Allocates the buffers of the slot, unless that has been done. To be called before the slot is
  /// used, by the thread that uses it; only values on a device and lent buffers need it.
  /// kDeviceMemory or kOutOfMemory without memory for it.
  virtual Status open_slot(int slot) = 0;
  /// Frees the buffers of the slot if they are lent. By the thread that used it.
  virtual void close_slot(int slot) noexcept = 0;

  /// Whether the input may have this size. Sides that must be multiples of a number are not
  /// checked.
  [[nodiscard]] virtual bool takes(int width, int height) const = 0;
  /// The input of a slot, for a size that takes() accepts.
  [[nodiscard]] virtual TensorView input_tensor(int slot, int width, int height) = 0;
  /// The output of a slot's last run at the usual input size.
  [[nodiscard]] virtual TensorView output_plane(int slot) = 0;

  /// Runs the network on the slot's input of this size. Stopping the token ends the run early with
  /// its reason, where the network can be ended. kModel for a size that takes() refuses. The plane
  /// belongs to the slot and is valid until its next run.
  virtual Status run(int slot, int width, int height, const CancelToken& token,
                     TensorView& plane) = 0;
  /// Runs the inputs of these slots as one batch, of 1 or a size of timings() that holds them, at
  /// the usual input size, and writes the outputs of the slots. One batch runs at a time; its slots
  /// have no other run meanwhile. kDeviceMemory for a size that is not one of timings().
  virtual Status run_batch(std::size_t size, std::span<const int> slots, const CancelToken& token,
                           ThreadPool& pool) = 0;
  /// Has `work`, as long as it exists, queued behind each run of the slot at the usual size, on the
  /// stream of the run, which is waited for with it. False where runs have no such stream.
  virtual bool queue_behind(int, std::weak_ptr<const WorkOnDevice> /*work*/) { return false; }
  /// Runs the network once on zeros, in sizes of batches from the smallest to the largest. No slot
  /// is in use meanwhile.
  virtual Status check(const CancelToken& token) = 0;

  /// Sizes of batches in ascending order, from 1 on; empty if there are none but single runs,
  /// unless these were to be timed. Sizes that cannot be opened, for example for lack of device
  /// memory, are left out, and the log says why.
  [[nodiscard]] virtual const std::vector<BatchTiming>& timings() const = 0;
  [[nodiscard]] virtual double load_ms() const = 0;
  [[nodiscard]] virtual double warm_up_ms() const = 0;
};

}  // namespace cutout
