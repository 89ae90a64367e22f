#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/network.h"
#include "core/status.h"
#include "core/tensor.h"
#include "core/thread_pool.h"
#include "ort/options.h"

namespace cutout::ort {

/// One ONNX network and the buffers of its runs. The session (weights, thread pool) is shared by
/// all slots; each slot owns one input buffer and one buffer for each output, allocated once: in
/// this process's memory when the network is opened; on a device the first then, the others by
/// open_slot(). With NetworkOptions::lend_buffers they exist between open_slot() and close_slot().
///
/// | what   | layout                                                                              |
/// |--------|-------------------------------------------------------------------------------------|
/// | input  | exactly one, float32 [1, 3, height, width]; a file that leaves height and width     |
/// |        | free also takes smaller ones, in the same buffers                                   |
/// | output | float32; a single one is [1, 1, h, w] or the same with fewer leading ones, and h, w |
/// |        | may differ from the input's; several are [1, n, h, w]                               |
/// | memory | this process's, or a device's (NetworkOptions::memory)                              |
/// | batches| a session of its own for each size, with a copy of the weights                      |
/// | threads| different slots may run at the same time, one slot on one thread                    |
class Network final : public cutout::Network {
 public:
  /// Opens the file, checks its shapes and runs it once on slot 0. kModel for a file that cannot be
  /// used, kRuntime when the provider cannot be used; never falls back to the CPU.
  static Status open(const NetworkOptions& options, const CancelToken& token,
                     std::unique_ptr<Network>& network);
  static Status open(const NetworkOptions& options, const CancelToken& token,
                     std::unique_ptr<cutout::Network>& network) {
    std::unique_ptr<Network> opened;
    CUTOUT_RETURN_IF_ERROR(open(options, token, opened));
    network = std::move(opened);
    return {};
  }
  ~Network() override;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Allocates the buffers of the slot, unless that has been done. To be called before the slot is
  /// used, by the thread that uses it; only values on a device and lent buffers need it.
  /// kDeviceMemory or kOutOfMemory without memory for it.
  Status open_slot(int slot) override;

  /// Frees the buffers of the slot if they are lent. By the thread that used it.
  void close_slot(int slot) noexcept override;

  /// Whether the input may have this size: that of the options, or one of at most its area where
  /// the file leaves it free. Sides that must be multiples of a number are not checked.
  [[nodiscard]] bool takes(int width, int height) const override;

  /// 3 * height * width values, planes in the order R, G, B; a smaller input uses the front. Of a
  /// network whose values lie in this process's memory.
  [[nodiscard]] std::span<float> input(int slot);
  /// The same for an input of this size, which takes() accepts, wherever it lies.
  [[nodiscard]] TensorView input_tensor(int slot, int width, int height) override;
  /// The values of an output, the last dimension fastest; as input().
  [[nodiscard]] std::span<float> output(int slot, int index = 0);

  /// Runs the network on the slot's input. Stopping the token ends the run early with its reason.
  Status run(int slot, const CancelToken& token);

  /// Runs the network as run() does, for an input of this size; fetches output 0 alone, which has
  /// to be one plane. kModel for a size that takes() refuses. The plane belongs to the slot and is
  /// valid until its next run.
  Status run(int slot, int width, int height, const CancelToken& token, TensorView& plane) override;

  /// Runs the inputs of these slots as one batch, of 1 or a size of timings() that holds them, at
  /// the usual input size, and writes the outputs of the slots. Other places of the batch are
  /// computed from what they held before. One batch runs at a time; its slots have no other run
  /// meanwhile. kDeviceMemory for a size that is not one of timings().
  Status run_batch(std::size_t size, std::span<const int> slots, const CancelToken& token,
                   ThreadPool& pool) override;

  /// Runs each session once on zeros, on its first slot. No slot is in use meanwhile.
  Status check(const CancelToken& token) override;

  /// Output 0 of a slot's last run at the usual input size, which has to be one plane.
  [[nodiscard]] TensorView output_plane(int slot) override;

  /// Sizes of batches in ascending order, from 1 on; empty if there are none but single runs,
  /// unless these were to be timed. Sizes of the options that cannot be opened, for example for
  /// lack of device memory, are left out, and the log says why.
  [[nodiscard]] const std::vector<BatchTiming>& timings() const override { return timings_; }

  /// All dimensions of an output, at least two.
  [[nodiscard]] const std::vector<std::int64_t>& output_shape(int index) const;
  [[nodiscard]] double load_ms() const override { return load_ms_; }
  [[nodiscard]] double warm_up_ms() const override { return warm_up_ms_; }

 private:
  struct Slot;  // ONNX Runtime's types stay in network.cc
  struct Session;

  Network();
  void open_batches(const NetworkOptions& options, const CancelToken& token);
  Status open_batch(const NetworkOptions& options, int size, const CancelToken& token);
  Status run_session(Session& session, Slot& slot, const CancelToken& token);

  std::unique_ptr<Session> session_;
  double load_ms_ = 0;
  double warm_up_ms_ = 0;
  std::vector<std::unique_ptr<Session>> batches_;  // of one slot each, for batches of one size
  std::vector<BatchTiming> timings_;
};

}  // namespace cutout::ort
