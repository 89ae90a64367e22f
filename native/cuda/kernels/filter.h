#pragma once

#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/table.h"
#include "image/math/filter.h"
#include "image/math/network_input.h"

namespace cutout::cuda {

/// The two passes of image/filter.h, and on them the network's input and the reduction.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | scratch   | 4 * image.width * rows.outputs floats, aligned to 16 bytes                           |
/// | out       | network input: 3 planes of columns.outputs * rows.outputs; reduction: an image of    |
/// |           | that size, which may not be the image's own                                          |
/// | agreement | bit-equal to fill_network_input, reduce_in_place                                     |

struct alignas(16) Filtered {
  float sum[4];
};

/// Vertical pass: a block is a tile of one output row.
struct FilterRows {
  static constexpr int kWidth = 128;
  static constexpr int kHeight = 1;
  static constexpr int kPhases = 3;
  struct Shared {
    std::uint32_t translucent;
  };

  Pixels image;
  FilterTaps rows;
  Filtered* out;

  template <int kPhase>
  CUTOUT_HD void run(const ThreadIndex& at, Shared& shared) const {
    if constexpr (kPhase == 0) {
      if (at.thread_x == 0) shared.translucent = 0;
    } else {
      for (int i = at.thread_x; i < kFilterTile; i += kWidth) {
        const int x = at.block_x * kFilterTile + i;
        if (x >= image.width) break;
        if constexpr (kPhase == 1) {
          if (!opaque(x, at.block_y)) atomic_or(&shared.translucent, 1);
        } else {
          out[index_of(x, at.block_y, image.width)] =
              filtered(x, at.block_y, shared.translucent != 0);
        }
      }
    }
  }

 private:
  CUTOUT_HD std::uint32_t word_at(int x, int y, int k) const {
    return image.data[index_of(x, rows.first[y] + k, image.stride)];
  }

  CUTOUT_HD bool opaque(int x, int y) const {
    std::uint32_t alpha = 255;
    for (int k = 0; k < rows.count[y]; ++k) alpha &= word_at(x, y, k) >> 24;
    return alpha == 255;
  }

  CUTOUT_HD Filtered filtered(int x, int y, bool translucent) const {
    const int count = rows.count[y];
    const float* weights = rows.weights + index_of(0, y, rows.stride);
    Filtered result = {};
    for (int k = 0; k < count; ++k) {
      const std::uint32_t word = word_at(x, y, k);
      const std::uint8_t rgba[4] = {
          static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8),
          static_cast<std::uint8_t>(word >> 16), static_cast<std::uint8_t>(word >> 24)};
      if (!translucent) {
        add_opaque(rgba, weights[k], result.sum);
      } else if (k < count / 4 * 4) {
        add_one_of_four(rgba, weights[k] * (1.0F / 255.0F), result.sum);
      } else {
        add_premultiplied(rgba, weights[k], result.sum);
      }
    }
    return result;
  }
};

/// Horizontal pass: a thread computes an output and hands it to `store`.
template <typename Store>
struct FilterColumns {
  const Filtered* filtered;
  int width;  // of the image
  FilterTaps columns;
  Store store;

  CUTOUT_HD void operator()(int x, int y) const {
    float sum[4];
    sum_columns(filtered[index_of(columns.first[x], y, width)].sum,
                columns.weights + index_of(0, x, columns.stride), columns.count[x], sum);
    store(x, y, sum);
  }
};

struct StoreInput {
  Normalisation how;
  float* out;
  int width;
  std::ptrdiff_t plane;

  CUTOUT_HD void operator()(int x, int y, const float* sum) const {
    const float gray = gray_behind(sum[3]);
    for (int c = 0; c < 3; ++c) {
      out[c * plane + index_of(x, y, width)] = normalised(sum[c], gray, how.mean[c], how.scale[c]);
    }
  }
};

struct StoreStraight {
  Pixels out;

  CUTOUT_HD void operator()(int x, int y, const float* sum) const {
    const float scale = straight_scale(sum[3]);
    std::uint32_t word = static_cast<std::uint32_t>(straight_byte(sum[3])) << 24;
    for (int c = 0; c < 3; ++c) {
      word |= static_cast<std::uint32_t>(straight_byte(sum[c] * scale)) << (8 * c);
    }
    out.data[index_of(x, y, out.stride)] = word;
  }
};

template <typename Executor, typename Store>
void filter(Executor& on, Pixels image, FilterTaps rows, FilterTaps columns, float* scratch,
            const Store& store) {
  auto* filtered = reinterpret_cast<Filtered*>(scratch);
  on.run(ceil_div(image.width, kFilterTile), rows.outputs, FilterRows{image, rows, filtered});
  over_plane(on, columns.outputs, rows.outputs,
             FilterColumns<Store>{filtered, image.width, columns, store});
}

template <typename Executor>
void fill_input(Executor& on, Pixels image, FilterTaps rows, FilterTaps columns, Normalisation how,
                float* scratch, float* out) {
  const int width = columns.outputs;
  filter(on, image, rows, columns, scratch,
         StoreInput{how, out, width, index_of(0, rows.outputs, width)});
}

template <typename Executor>
void reduce(Executor& on, Pixels image, FilterTaps rows, FilterTaps columns, float* scratch,
            Pixels out) {
  filter(on, image, rows, columns, scratch, StoreStraight{out});
}

/// A plane of another size: resize_plane of image/resample.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | scratch   | width * rows.outputs floats                                                          |
/// | out       | columns.outputs * rows.outputs floats, which may not be the plane's own              |
/// | agreement | bit-equal to resize_plane                                                            |

/// The sum over the taps of one output, `step` apart.
CUTOUT_HD float sum_of_taps(const FilterTaps& taps, int output, const float* line,
                            std::ptrdiff_t step) {
  const float* const weights = taps.weights + index_of(0, output, taps.stride);
  const float* const first = line + taps.first[output] * step;
  float sum = 0;
  for (int k = 0; k < taps.count[output]; ++k) sum += weights[k] * first[k * step];
  return sum;
}

struct ResizeRows {
  const float* plane;
  int width;
  FilterTaps rows;
  float* out;

  CUTOUT_HD void operator()(int x, int y) const {
    out[index_of(x, y, width)] = sum_of_taps(rows, y, plane + x, width);
  }
};

struct ResizeColumns {
  const float* lines;
  int width;
  FilterTaps columns;
  float* out;

  CUTOUT_HD void operator()(int x, int y) const {
    out[index_of(x, y, columns.outputs)] =
        sum_of_taps(columns, x, lines + index_of(0, y, width), 1);
  }
};

template <typename Executor>
void resize_plane(Executor& on, const float* plane, int width, FilterTaps rows, FilterTaps columns,
                  float* scratch, float* out) {
  over_plane(on, width, rows.outputs, ResizeRows{plane, width, rows, scratch});
  over_plane(on, columns.outputs, rows.outputs, ResizeColumns{scratch, width, columns, out});
}

}  // namespace cutout::cuda
