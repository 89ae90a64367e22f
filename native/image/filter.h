#pragma once

#include <cstddef>

#include "core/image_view.h"
#include "image/taps.h"

namespace cutout {

/// The two passes of a separable filter over straight RGBA. Colours are premultiplied on the way
/// in, so a filtered pixel is (R, G, B, A) with A in 0..255 and R, G, B at most about A (a filter
/// with negative lobes overshoots). The vertical pass comes first: it reads whole rows and shrinks
/// the data for the horizontal one.
///
/// | limit   |                                                                                          |
/// |---------|------------------------------------------------------------------------------------------|
/// | layout  | RGBA8, any stride; filtered rows are interleaved float RGBA                              |
/// | in, out | never overlap                                                                            |
/// | order   | sums run in a fixed order: the same bits on every processor and in every thread          |
/// | threads | every function is reentrant; callers split rows                                          |

/// Numbers a row for `filter_columns` needs: the row, then zeros for the reader of whole groups.
inline std::size_t filtered_row_size(int width, const Taps& columns) {
  return (static_cast<std::size_t>(width) + static_cast<std::size_t>(columns.stride)) * 4;
}

/// Vertical pass: output row `y` of `rows` into row[0 .. rgba.width * 4). What lies behind is
/// untouched.
void filter_rows(ConstImageView rgba, const Taps& rows, int y, float* row);

/// Horizontal pass: `row` as laid out by `filter_rows`, zeros behind it; writes columns.outputs()
/// pixels.
void filter_columns(const float* row, const Taps& columns, float* out);

}  // namespace cutout
