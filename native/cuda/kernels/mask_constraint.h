#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/kernels/blocks.h"
#include "cuda/table.h"
#include "matte/math/mask_constraint.h"

namespace cutout::cuda {

/// Constrains an output by a mask of the subject, in place, and puts back what was removed of it as
/// a component near what the mask marks: matte/mask_constraint.h.
///
/// | limit     |                                                                                      |
/// |-----------|--------------------------------------------------------------------------------------|
/// | output    | rows.outputs * columns.outputs floats 0..1, sides up to 8192                         |
/// | mask      | rows of mask_width bytes without padding                                             |
/// | taps      | mask_taps() and block_taps()                                                         |
/// | scratch   | constraint_scratch() bytes, aligned to 8: 1 for each network pixel, 64 for each block |
/// | marked    | a byte for each block: 1 where something within kBand blocks is in                   |
/// | agreement | bit-equal to resize_mask and constrain; to restore_marked                            |

/// Sums over the blocks of a row around one.
struct RowSums {
  MaskSums wide;  // up to kAgreementRadius away
  int in;         // up to kBand away
  int out;
};

/// An output, its mask and its blocks.
struct MaskedOutput {
  float* p;
  int width;
  int height;
  int side;  // of a block
  int columns;
  int rows;
  MaskSums* blocks;
  RowSums* in_row;
  Guidance* guidances;
  std::uint8_t* marked;
  std::uint8_t* mask;  // at the output's size
};

inline std::size_t constraint_scratch(int width, int height) {
  return (sizeof(MaskSums) + sizeof(RowSums) + sizeof(Guidance)) * block_count(width, height) +
         static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

inline MaskedOutput masked_output(float* p, int width, int height, void* scratch,
                                  std::uint8_t* marked) {
  const std::size_t blocks = block_count(width, height);
  MaskedOutput output{};
  output.p = p;
  output.width = width;
  output.height = height;
  output.side = block_side(width, height);
  output.columns = ceil_div(width, output.side);
  output.rows = ceil_div(height, output.side);
  output.blocks = static_cast<MaskSums*>(scratch);
  output.in_row = reinterpret_cast<RowSums*>(output.blocks + blocks);
  output.guidances = reinterpret_cast<Guidance*>(output.in_row + blocks);
  output.marked = marked;
  output.mask = reinterpret_cast<std::uint8_t*>(output.guidances + blocks);
  return output;
}

struct ResizeMask {
  MaskedOutput output;
  const std::uint8_t* mask;
  int mask_width;
  const LinearTap* columns;
  const LinearTap* rows;

  CUTOUT_HD void operator()(int x, int y) const {
    output.mask[index_of(x, y, output.width)] = mask_between(mask, mask_width, columns[x], rows[y]);
  }
};

struct SumBlocks {
  MaskedOutput output;

  CUTOUT_HD void operator()(int x, int y) const {
    output.blocks[index_of(x, y, output.columns)] =
        sum_block(output.p, output.mask, output.width, output.height, output.side, x * output.side,
                  y * output.side);
  }
};

struct SumRows {
  MaskedOutput output;

  CUTOUT_HD void operator()(int x, int y) const {
    const MaskSums* const row = output.blocks + index_of(0, y, output.columns);
    RowSums sums = {{0, 0, 0, 0}, 0, 0};
    const int last = clamp(x + kAgreementRadius, 0, output.columns - 1);
    for (int i = clamp(x - kAgreementRadius, 0, x); i <= last; ++i) {
      sums.wide.add(row[i]);
      if (i < x - kBand || i > x + kBand) continue;
      sums.in += row[i].in;
      sums.out += row[i].out;
    }
    output.in_row[index_of(x, y, output.columns)] = sums;
  }
};

struct FindGuidance {
  MaskedOutput output;

  CUTOUT_HD void operator()(int x, int y) const {
    MaskSums wide = {0, 0, 0, 0};
    int in = 0;
    int out = 0;
    const int last = clamp(y + kAgreementRadius, 0, output.rows - 1);
    for (int i = clamp(y - kAgreementRadius, 0, y); i <= last; ++i) {
      const RowSums& row = output.in_row[index_of(x, i, output.columns)];
      wide.add(row.wide);
      if (i < y - kBand || i > y + kBand) continue;
      in += row.in;
      out += row.out;
    }
    const std::ptrdiff_t block = index_of(x, y, output.columns);
    output.guidances[block] = guidance_of(in, out, wide);
    output.marked[block] = in > 0 ? 1 : 0;
  }
};

struct Constrain {
  MaskedOutput output;
  const LinearTap* columns;
  const LinearTap* rows;

  CUTOUT_HD void operator()(int x, int y) const {
    const std::ptrdiff_t i = index_of(x, y, output.width);
    const Guidance guidance =
        guidance_between(output.guidances, output.columns, columns[x], rows[y]);
    const float soft =
        guidance.agreement < 1 ? soft_mask(output.mask, output.width, output.height, x, y) : 0.0F;
    output.p[i] = constrained(output.p[i], output.mask[i], soft, guidance);
  }
};

template <typename Executor>
void constrain(Executor& on, float* p, const std::uint8_t* mask, int mask_width, MaskTaps rows,
               MaskTaps columns, void* scratch, std::uint8_t* marked) {
  const int width = columns.outputs;
  const int height = rows.outputs;
  const MaskedOutput output = masked_output(p, width, height, scratch, marked);
  over_plane(on, width, height, ResizeMask{output, mask, mask_width, columns.mask, rows.mask});
  over_plane(on, output.columns, output.rows, SumBlocks{output});
  over_plane(on, output.columns, output.rows, SumRows{output});
  over_plane(on, output.columns, output.rows, FindGuidance{output});
  over_plane(on, width, height, Constrain{output, columns.blocks, rows.blocks});
}

struct RestoreMarked {
  float* p;
  const float* constrained;
  const std::uint8_t* marked;
  int width;
  int side;  // of a block
  int columns;

  CUTOUT_HD void operator()(int x, int y) const {
    if (marked[index_of(x / side, y / side, columns)] == 0) return;
    const std::ptrdiff_t i = index_of(x, y, width);
    p[i] = constrained[i];
  }
};

template <typename Executor>
void restore_marked(Executor& on, float* p, const float* constrained, int width, int height,
                    const std::uint8_t* marked) {
  const int side = block_side(width, height);
  over_plane(on, width, height,
             RestoreMarked{p, constrained, marked, width, side, ceil_div(width, side)});
}

}  // namespace cutout::cuda
