#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cancel.h"
#include "core/status.h"
#include "low_precision/bf16.h"
#include "low_precision/matrix.h"
#include "low_precision/run.h"

namespace cutout::low_precision {

/// One convolution of planes of floats in bf16 or in 8 bits, plain or deformable: inputs and what
/// is sampled between them are rounded to the nearest bf16, to even; offsets and masks are floats.
/// The values under the kernel of a pixel are a row that a Matrix is multiplied with.
class Convolution {
 public:
  struct Geometry {
    std::int64_t channels = 0;
    std::int64_t outputs = 0;
    std::array<std::int64_t, 2> kernel{};  // height, width
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::array<std::int64_t, 4> pads{};  // top, left, bottom, right
    bool relu = false;                   // whether negative outputs become 0
    bool deformable = false;             // whether a run has offsets and masks

    /// Height and width of the output; 0 where the kernel is larger than the planes.
    [[nodiscard]] std::array<std::int64_t, 2> output_size(std::int64_t height,
                                                          std::int64_t width) const;
  };

  /// Planes of a run, each of height x width. `offsets` are [taps, 2 (down, right), output height,
  /// output width] in pixels, `masks` factors, [taps, output height, output width].
  struct Image {
    const float* input = nullptr;
    const float* offsets = nullptr;
    const float* masks = nullptr;
    float* output = nullptr;
    int height = 0;
    int width = 0;
  };

  /// `weights` and `constants` are those of a Matrix with the inputs [kernel height, kernel width,
  /// channels] and a column for each output. Both are borrowed for as long as the convolution
  /// lives. kModel for anything that does not fit together.
  static Status make(bool bf16, const Geometry& geometry, std::span<const float> constants,
                     std::span<const std::int8_t> weights, Convolution& made);

  [[nodiscard]] const Geometry& geometry() const { return geometry_; }

  /// Memory of a run on planes of this size, to be aligned to Plan::kAlignment.
  [[nodiscard]] std::size_t bytes_of_run(std::int64_t height, std::int64_t width) const;

  /// `token` may be null; a stopped one ends the run with its reason.
  Status run(ConvKernel kernel, const Image& image, std::span<std::uint8_t> memory,
             const Parallel& parallel, const CancelToken* token) const;

 private:
  /// Whether a pixel's row is its own values.
  [[nodiscard]] bool is_pointwise() const;
  /// Bytes of the planes as pixels of bf16.
  [[nodiscard]] std::size_t map_bytes(std::size_t pixels) const;
  [[nodiscard]] std::size_t block_bytes() const;
  /// Writes the rows of output pixels [first, first + pixels).
  void sample(const Image& image, const Bf16* map, std::size_t first, int pixels, Bf16* rows) const;

  Geometry geometry_;
  Matrix matrix_;
  int inputs_ = 0;  // of a row
  int block_pixels_ = 0;
};

}  // namespace cutout::low_precision
