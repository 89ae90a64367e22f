#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"

namespace cutout::ort {

using Shape = std::vector<std::int64_t>;

/// Number of values of a shape without free sides.
std::size_t elements(const Shape& shape);

/// A named float32 tensor, the last dimension fastest. Borrowed until the run is over; of an input
/// the values are only read.
struct Tensor {
  const char* name = "";
  std::span<float> values;
  Shape shape;
};

/// An ONNX network on the CPU with any number of inputs and outputs, whose tensors belong to the
/// caller. Also opens files in ONNX Runtime's own format. Any number of runs may take place at the
/// same time.
class TensorNetwork {
 public:
  /// Opens the file without running it. `operators` as in NetworkOptions. kModel for a file that
  /// cannot be used.
  static Status open(const std::string& path, const std::string& operators, int intra_op_threads,
                     std::unique_ptr<TensorNetwork>& network);
  ~TensorNetwork();
  TensorNetwork(const TensorNetwork&) = delete;
  TensorNetwork& operator=(const TensorNetwork&) = delete;

  /// Declared shape of a float32 input or output, a free side as -1; empty without one of that
  /// name.
  [[nodiscard]] Shape input_shape(const std::string& name) const;
  [[nodiscard]] Shape output_shape(const std::string& name) const;
  [[nodiscard]] std::size_t inputs() const;

  /// Writes the outputs' values. kModel when a shape is not the network's. Stopping the token ends
  /// the run early with its reason.
  Status run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
             const CancelToken& token);

 private:
  struct Session;  // ONNX Runtime's types stay in tensor_network.cc

  TensorNetwork();

  std::unique_ptr<Session> session_;
};

}  // namespace cutout::ort
