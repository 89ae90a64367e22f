#pragma once

#include <climits>
#include <cstdint>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

struct MatteSummary {
  Box box;                             // smallest rectangle with every pixel of alpha > 0
  std::int64_t foreground_pixels = 0;  // pixels with alpha >= 128
  bool opaque = false;                 // every pixel has alpha 255
};

/// What a run of pixels adds to a summary.
struct Seen {
  std::uint32_t any = 0;    // OR of the alphas
  std::uint32_t all = 255;  // AND of the alphas
  std::uint32_t foreground = 0;
};

/// n pixels of RGBA8, from any byte on.
Seen look_at(const std::uint8_t* rgba, int n);

/// Collects a summary run by run; parts of a picture are joined with `add` in any order.
struct Summary {
  int left = INT_MAX;
  int top = INT_MAX;
  int right = -1;   // last column with alpha > 0
  int bottom = -1;  // last row
  std::int64_t foreground = 0;
  bool opaque = true;

  /// `rgba`: the n pixels from column x of row y on, of which `seen` tells.
  void add(const Seen& seen, const std::uint8_t* rgba, int x, int n, int y);
  void add(const Summary& other);
  [[nodiscard]] MatteSummary result() const;
};

/// Summary of the alpha in `region` (inside the picture), in coordinates of the picture.
/// Straight RGBA8 with any stride; rows over the pool, same result for any number of threads.
MatteSummary summarise_alpha(ConstImageView rgba, const Box& region, ThreadPool& pool);

}  // namespace cutout
