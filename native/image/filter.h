#pragma once

#include <cstddef>

#include "core/image_view.h"
#include "image/taps.h"

namespace cutout {

/// The two passes of a separable filter over straight RGBA. The vertical pass, which comes first,
/// premultiplies: a filtered pixel is (R, G, B, A) with A in 0..255 and R, G, B in 0..A, plus the
/// overshoot of a filter with negative lobes.
///
/// | limit   |                                                                                          |
/// |---------|------------------------------------------------------------------------------------------|
/// | layout  | RGBA8, any stride; filtered rows are interleaved float RGBA                              |
/// | in, out | never overlap                                                                            |
/// | order   | sums have a fixed order: the same bits on every processor and in every thread            |
/// | threads | every function is reentrant; callers split rows                                          |

/// Length of a row for `filter_columns`: the pixels, then zeros that whole groups of taps may read.
inline std::size_t filtered_row_size(int width, const Taps& columns) {
  return (static_cast<std::size_t>(width) + static_cast<std::size_t>(columns.stride)) * 4;
}

/// Vertical pass: output row `y` of `rows` into row[0 .. rgba.width * 4).
void filter_rows(ConstImageView rgba, const Taps& rows, int y, float* row);

/// Horizontal pass over a row from `filter_rows` with zeros behind it; writes columns.outputs()
/// pixels.
void filter_columns(const float* row, const Taps& columns, float* out);

}  // namespace cutout
