#pragma once

#include <cstddef>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "cuda/table.h"
#include "matte/pixels.h"

namespace cutout {

/// What comes back from a device of an image that the host has as it was before its matte: room for
/// a summary, and the edge runs (cuda/kernels/edge_runs.h), in a third of the image's bytes.
class EdgeRunsBlock {
 public:
  EdgeRunsBlock(int width, int height);

  /// Bytes of the block; 0: the image is too small.
  [[nodiscard]] std::size_t bytes() const { return capacity_ == 0 ? 0 : bytes_; }
  /// The runs in a block of the device or of the host. The summary is before them.
  [[nodiscard]] cuda::EdgeRuns runs(std::byte* block) const;
  /// Makes the result's pixels from those of before and a block on the host. False, with the pixels
  /// as they were, where there were more runs than room for them, or a state names a run that is
  /// not there, as where the device's memory was damaged.
  bool write(std::byte* block, ImageView pixels, HiddenColour hidden, ThreadPool& pool) const;

 private:
  int width_;
  int height_;
  std::size_t bytes_;
  std::size_t pixels_;  // where they begin in the block
  std::uint32_t capacity_ = 0;
};

}  // namespace cutout
