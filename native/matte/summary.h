#pragma once

#include <climits>
#include <cstdint>

#include "core/image_view.h"
#include "core/scan.h"
#include "core/thread_pool.h"

namespace cutout {

struct MatteSummary {
  Box box;                             // smallest rectangle with every pixel of alpha > 0
  std::int64_t foreground_pixels = 0;  // pixels with alpha >= 128
  bool opaque = false;                 // every pixel has alpha 255
};

/// Collects a summary run by run; summaries of parts of an image may be added in any order.
struct Summary {
  int left = INT_MAX;
  int top = INT_MAX;
  int right = -1;   // last column with alpha > 0
  int bottom = -1;  // last row
  std::int64_t foreground = 0;
  bool opaque = true;

  /// Adds the n pixels `rgba` of row y from column x on; `run` is scan_alpha(rgba, n).
  void add(const AlphaRun& run, const std::uint8_t* rgba, int x, int n, int y);
  void add(const Summary& other);
  [[nodiscard]] MatteSummary result() const;
};

/// Summary of the alpha in `region` (inside the image), in coordinates of the image. Straight RGBA8
/// with any stride; rows over the pool, same result for any number of threads.
MatteSummary summarise_alpha(ConstImageView rgba, const Box& region, ThreadPool& pool);

}  // namespace cutout
