#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "image/math/cubic.h"
#include "image/math/filter.h"

namespace cutout::cuda {

/// The enlargement of image/enlarge.h.
/// Tested, not used yet: composition runs on the CPU (docs/decisions/0253).
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | size      | at least the image's in each direction, larger in one                                |
/// | scratch   | 4 * image.width * rows.outputs floats, aligned to 16 bytes                           |
/// | kinds     | ceil(image.width / kCubicPiece) * rows.outputs bytes                                 |
/// | in == out | no                                                                                   |
/// | agreement | bit-equal to enlarge_in_place                                                        |

/// Alphas of the pixels of a piece, as bits.
enum Kind : std::uint32_t { kSomeTransparent = 1, kSomeOpaque = 2 };

struct alignas(16) CubicPixel {
  float channel[4];  // premultiplied
};

/// Vertical pass: a block is a piece of one output row.
struct EnlargeRows {
  static constexpr int kWidth = kCubicPiece;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 3;
  struct Shared {
    std::uint32_t any;
    std::uint32_t all;
  };

  Pixels image;
  CubicTaps rows;
  CubicPixel* out;
  std::uint8_t* kinds;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    const int x = at.block_x * kWidth + at.thread_x;
    const int y = at.block_y;
    if constexpr (kPhase == 0) {
      if (at.thread_x == 0) shared = {0, 255};
      return;
    }
    if (x >= image.width) return;
    std::uint32_t p[4];
    for (int k = 0; k < 4; ++k) {
      const int row = clamp(rows.before[y] - 1 + k, 0, image.height - 1);
      p[k] = image.data[index_of(x, row, image.stride)];
    }
    if constexpr (kPhase == 1) {
      atomic_or(&shared.any, (p[0] | p[1] | p[2] | p[3]) >> 24);
      atomic_and(&shared.all, (p[0] & p[1] & p[2] & p[3]) >> 24);
    } else {
      const bool transparent = shared.any == 0;
      const bool opaque = shared.all == 255;
      float w[4];
      for (int k = 0; k < 4; ++k) w[k] = rows.weights[k][y];
      out[index_of(x, y, image.width)] = transparent ? CubicPixel{}
                                         : opaque    ? of_opaque(p, w)
                                                     : of_mixed(p, w);
      if (at.thread_x == 0) {
        kinds[index_of(at.block_x, y, ceil_div(image.width, kCubicPiece))] =
            static_cast<std::uint8_t>(transparent ? kSomeTransparent
                                      : opaque    ? kSomeOpaque
                                                  : kSomeTransparent | kSomeOpaque);
      }
    }
  }

 private:
  CUTOUT_HD static CubicPixel of_opaque(const std::uint32_t* p, const float* w) {
    return {{opaque_colour(p, w, 0), opaque_colour(p, w, 8), opaque_colour(p, w, 16), 255.0F}};
  }
  CUTOUT_HD static CubicPixel of_mixed(const std::uint32_t* p, const float* w) {
    const MixedColumn column = mixed_column(p, w);
    return {{mixed_colour(column, p, 0), mixed_colour(column, p, 8), mixed_colour(column, p, 16),
             column.alpha}};
  }
};

/// Horizontal pass: a block is a piece of one output row.
struct EnlargeColumns {
  static constexpr int kWidth = kCubicPiece;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 1;
  using Shared = NothingShared;

  const CubicPixel* filtered;
  const std::uint8_t* kinds;
  int width;  // of the image
  CubicTaps columns;
  Pixels out;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared&) const {
    const int begin = at.block_x * kWidth;
    const int x = begin + at.thread_x;
    const int y = at.block_y;
    if (x >= columns.outputs) return;
    const int end = clamp(begin + kWidth, 0, columns.outputs);
    const int first = clamp(columns.before[begin] - 1, 0, width - 1) / kCubicPiece;
    const int last = clamp(columns.before[end - 1] + 2, 0, width - 1) / kCubicPiece;
    std::uint32_t seen = 0;
    for (int piece = first; piece <= last; ++piece) {
      seen |= kinds[index_of(piece, y, ceil_div(width, kCubicPiece))];
    }
    std::uint32_t pixel = 0;
    if (seen != kSomeTransparent) {
      const bool opaque = seen == kSomeOpaque;
      const float alpha = opaque ? 255.0F : sum(x, y, 3);
      const float scale = opaque ? 1.0F : straight_scale(alpha);
      pixel = static_cast<std::uint32_t>(straight_byte(alpha)) << 24;
      if (alpha >= 0.5F) {
        for (int c = 0; c < 3; ++c) {
          const float colour = opaque ? sum(x, y, c) : sum(x, y, c) * scale;
          pixel |= static_cast<std::uint32_t>(straight_byte(colour)) << (8 * c);
        }
      }
    }
    out.data[index_of(x, y, out.stride)] = pixel;
  }

 private:
  CUTOUT_HD float sum(int x, int y, int channel) const {
    float sum = 0.0F;
    for (int k = 0; k < 4; ++k) {
      const int column = clamp(columns.before[x] - 1 + k, 0, width - 1);
      const float product =
          columns.weights[k][x] * filtered[index_of(column, y, width)].channel[channel];
      sum = k == 0 ? product : sum + product;
    }
    return sum;
  }
};

template <typename Executor>
void enlarge(Executor& on, Pixels image, CubicTaps rows, CubicTaps columns, float* scratch,
             std::uint8_t* kinds, Pixels out) {
  auto* filtered = reinterpret_cast<CubicPixel*>(scratch);
  on.run(ceil_div(image.width, kCubicPiece), rows.outputs,
         EnlargeRows{image, rows, filtered, kinds});
  on.run(ceil_div(columns.outputs, kCubicPiece), rows.outputs,
         EnlargeColumns{filtered, kinds, image.width, columns, out});
}

}  // namespace cutout::cuda
