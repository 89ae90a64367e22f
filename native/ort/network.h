#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"

namespace cutout::ort {

enum class Provider { kCpu, kCuda, kTensorRt };

struct NetworkOptions {
  std::string path;
  /// Where the network as ONNX Runtime optimised it is left, its weights beside it as
  /// `save_to`.data, both for this library on this processor only; empty: nowhere. A file that was
  /// made so opens without being optimised again, and its weights are mapped instead of read.
  std::string save_to;
  int width = 0;  // input size in pixels
  int height = 0;
  Provider provider = Provider::kCpu;
  int device_id = 0;         // of the GPU
  int intra_op_threads = 1;  // of the session's pool, the calling thread included
  int slots = 1;             // runs at the same time
  int outputs = 1;           // the first so many are fetched; output 0 of a single one is a map
};

/// Output 0 of a run as one map, row by row; owned by its slot, valid until the slot's next run.
struct Map {
  std::span<float> values;
  int width = 0;
  int height = 0;
};

/// One ONNX network and the memory of its runs. The session (weights, thread pool) is shared by all
/// slots; a slot owns one input buffer and one for each output that are allocated once.
///
/// | what   | layout                                                                              |
/// |--------|-------------------------------------------------------------------------------------|
/// | input  | float32 [1, 3, height, width], exactly one; a file that leaves height and width     |
/// |        | free also takes smaller ones, in the same buffers                                   |
/// | output | float32; fetched alone, output 0 is [1, 1, h, w] or the same with fewer leading     |
/// |        | ones, and h, w may differ from the input's; several are [1, n, h, w]                |
/// | threads| different slots at the same time; one slot by one thread                             |
class Network {
 public:
  /// Opens the file, checks its shapes and runs it once on slot 0. kModel for the file's faults,
  /// kRuntime when the provider cannot be used: never a silent fall-back to the CPU.
  static Status open(const NetworkOptions& options, const CancelToken& token,
                     std::unique_ptr<Network>& network);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Whether a picture of this size can be run: the size of the options, or one of at most its area
  /// where the file leaves it free. What its sides must be multiples of is for the caller to know.
  [[nodiscard]] bool takes(int width, int height) const;

  /// Room for 3 * height * width values, planes in the order R, G, B; a smaller picture fills the
  /// front of it.
  [[nodiscard]] std::span<float> input(int slot);
  /// The values of an output, the last dimension fastest, as the network gave them.
  [[nodiscard]] std::span<float> output(int slot, int index = 0);

  /// Runs the slot's input to its output. Stopping the token ends the run early with its reason.
  Status run(int slot, const CancelToken& token);

  /// Likewise for a picture of this size and output 0 alone, which has to be one map. kModel for a
  /// size it does not take.
  Status run(int slot, int width, int height, const CancelToken& token, Map& map);

  /// Every dimension of an output, at least two.
  [[nodiscard]] const std::vector<std::int64_t>& output_shape(int index) const {
    return output_shapes_[static_cast<std::size_t>(index)];
  }
  /// The last two dimensions of output 0.
  [[nodiscard]] int output_width() const { return static_cast<int>(output_shape(0).back()); }
  [[nodiscard]] int output_height() const { return static_cast<int>(output_shape(0).end()[-2]); }
  [[nodiscard]] const std::vector<std::string>& input_names() const { return input_names_; }
  [[nodiscard]] const std::vector<std::string>& output_names() const { return output_names_; }
  [[nodiscard]] double load_ms() const { return load_ms_; }
  [[nodiscard]] double warm_up_ms() const { return warm_up_ms_; }

 private:
  struct Session;  // ONNX Runtime's types stay in network.cc

  Network();

  std::unique_ptr<Session> session_;
  std::vector<std::string> input_names_;
  std::vector<std::string> output_names_;
  std::vector<std::vector<std::int64_t>> output_shapes_;
  double load_ms_ = 0;
  double warm_up_ms_ = 0;
};

}  // namespace cutout::ort
