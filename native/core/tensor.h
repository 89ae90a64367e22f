#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>

namespace cutout {

/// Where values lie: in this process's memory, or in that of a GPU.
enum class Placement { kHost, kDevice };

/// A borrowed view of planes of floats, plane after plane, row after row without padding.
struct TensorView {
  void* data = nullptr;
  int planes = 0;
  int height = 0;
  int width = 0;
  Placement placement = Placement::kHost;

  /// Number of values.
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(planes) * static_cast<std::size_t>(height) *
           static_cast<std::size_t>(width);
  }
  [[nodiscard]] std::size_t bytes() const { return size() * sizeof(float); }
};

/// The values of a tensor on the host. Throws std::logic_error for one on a device.
inline std::span<float> host_floats(const TensorView& tensor) {
  if (tensor.placement != Placement::kHost) {
    throw std::logic_error("The tensor does not lie on the host.");
  }
  return {static_cast<float*>(tensor.data), tensor.size()};
}

/// float32 values on the host as a tensor.
inline TensorView host_tensor(std::span<float> values, int planes, int height, int width) {
  return {values.data(), planes, height, width};
}

/// A tensor with the memory that its backend allocated.
struct Tensor {
  std::shared_ptr<void> memory;
  TensorView view;
};

}  // namespace cutout
