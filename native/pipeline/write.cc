#include "pipeline/write.h"

#include "matte/pixels.h"

namespace cutout {

Status write(const MatteJob& job, const Prepared& prepared, const Solved& solved,
             MatteSummary& summary) {
  const HiddenColour hidden = job.plan.hidden_colour;
  const Box& view = prepared.view;
  const Box whole{0, 0, solved.image.width, solved.image.height};
  CUTOUT_RETURN_IF_ERROR(
      solved.matte->write(part_of(solved.image, view), prepared.roi, hidden, summary));
  if (view == whole) return {};
  clear_around(solved.image, whole, view, hidden);
  summary.opaque = false;
  if (!summary.box.empty()) {
    summary.box.left += view.left;
    summary.box.top += view.top;
  }
  return {};
}

}  // namespace cutout
