#pragma once

#include <memory>
#include <span>

#include "core/thread_pool.h"
#include "matte/grid.h"

namespace cutout {

/// Planes of guide.cells() numbers in 0..1.
struct CorrectedAlpha {
  std::unique_ptr<float[]> alpha;
  std::unique_ptr<float[]> settled;  // c: how far alpha is what the cell's colour says
  std::unique_ptr<float[]> told;     // t: what it says; 0 where c is 0
};

/// A network's answer, corrected where the colours of what it is sure of say otherwise: networks
/// are taught on masks, give a strand thinner than a cell nearly all of it and draw edges too wide
/// (docs/research/0179).
///
/// Sure are cells that have only p > 0.98 within 3 cells (foreground), or only p < 0.02 within 2
/// (background). Cells that have only p > 0.7 within 20 are the inside of something the network
/// half believes (docs/research/0187): foreground too, if there is any. F and B are the colours of
/// the nearest ones (pyramid.h). All other cells:
///   t = (I - B).(F - B) / |F - B|^2, in 0..1;   e = I - B - t (F - B)
///   alpha = p + c (t - p),   c = |F - B|^2 / (|F - B|^2 + 0.1) 0.002 / (0.002 + |e|^2)
/// so what F and B cannot mix (e), or can hardly be told apart by, stays as the network has it.
/// Cells that have only p < 0.3 within 20 are haze and not raised (c is 0 there where t > p).
/// Without sure cells of either kind nothing is changed. `p` is clamped to 0..1, NaN counts as 0.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | size      | from 1 x 1                                                                             |
/// | scratch   | 19 bytes a cell besides the result                                                     |
/// | threads   | rows over the pool; same bytes for any number of threads                               |
/// | agreement | bit-equal to the scalar version                                                        |
CorrectedAlpha correct_alpha(const Guide& guide, std::span<const float> p, ThreadPool& pool);

/// The same, cell by cell.
CorrectedAlpha correct_alpha_scalar(const Guide& guide, std::span<const float> p);

/// `guide` for what comes after a correction: it knows what the cells' colours say and how far that
/// is believed, one never without the other. Borrows from `corrected`.
inline Guide guide_after(Guide guide, const CorrectedAlpha& corrected) {
  guide.settled = corrected.settled.get();
  guide.told = corrected.told.get();
  return guide;
}

}  // namespace cutout
