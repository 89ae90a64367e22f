#include "pipeline/prepare.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "matte/mask_constraint.h"

namespace cutout {

namespace {

constexpr int kViewGrid = 16;  // steps of the view's edges where the output is cached

/// The part of an image of `to` that shows what `part` shows of one of width x height.
Box scaled(const Box& part, int width, int height, ImageView to) {
  const auto at = [](int value, int from, int target) {
    return static_cast<int>((static_cast<std::int64_t>(value) * target + from / 2) / from);
  };
  const int left = at(part.left, width, to.width);
  const int top = at(part.top, height, to.height);
  return {left, top, std::max(1, at(part.left + part.width, width, to.width) - left),
          std::max(1, at(part.top + part.height, height, to.height) - top)};
}

/// What both show, in pixels of `part`; empty if they show nothing together.
Box inside_part(const Box& roi, const Box& part) {
  Box both = intersection(roi, part);
  both.left -= part.left;
  both.top -= part.top;
  return both;
}

void choose_view(const MatteJob& job, Prepared& prepared) {
  const MattePlan& plan = job.plan;
  const Box whole{0, 0, plan.width, plan.height};
  prepared.view = whole;
  prepared.roi = plan.roi;
  prepared.part = {0, 0, job.pixels.width, job.pixels.height};
  if (!plan.mask) return;
  const SubjectMask& mask = *plan.mask;
  const Box view = prepared.returns_output ? shared_view(plan.first_mask.value_or(mask), mask,
                                                         plan.width, plan.height, kViewGrid)
                                           : mask_view(mask, plan.width, plan.height);
  const Box roi = inside_part(plan.roi, view);
  if (view == whole || roi.empty()) return;  // the mask shows nothing in the region of interest
  prepared.view = view;
  prepared.roi = roi;
  prepared.part = scaled(view, plan.width, plan.height, job.pixels);
}

/// Whether anything will read the network's input.
bool needs_input(const MatteJob& job, const Prepared& prepared) {
  if (!prepared.reused || job.classifier) return true;
  const CachedOutput& cached = *job.plan.cached;
  return input_is_guide(prepared.spec, cached.width, cached.height, prepared.view);
}

Status fill(const MatteJob& job, const StageContext& context, Prepared& prepared) {
  prepared.input =
      job.network.network->input_tensor(context.slot, prepared.spec.width, prepared.spec.height);
  CUTOUT_RETURN_IF_ERROR(
      context.backend.fill_input(*prepared.image, prepared.part, prepared.spec, *prepared.input));
  return context.token.check();
}

}  // namespace

Status prepare(const MatteJob& job, const StageContext& context, Prepared& prepared) {
  const NetworkInput& usual = job.network.spec.input;
  prepared.spec = usual;
  if (job.plan.input) {
    prepared.spec.width = job.plan.input->width;
    prepared.spec.height = job.plan.input->height;
  }
  const int width = prepared.spec.width;
  const int height = prepared.spec.height;
  if (!job.network.network->takes(width, height)) {
    return {Code::kModel, "The network '" + job.network.spec.name + "' cannot run at " +
                              std::to_string(width) + " x " + std::to_string(height) + "."};
  }
  prepared.usual_size = width == usual.width && height == usual.height;
  prepared.returns_output = job.plan.return_output && job.plan.mask && prepared.usual_size;
  choose_view(job, prepared);
  prepared.reused =
      prepared.returns_output && job.plan.cached && job.plan.cached->view == prepared.view;
  CUTOUT_RETURN_IF_ERROR(context.backend.open_image(job.pixels, prepared.image));
  CUTOUT_RETURN_IF_ERROR(context.token.check());
  if (!needs_input(job, prepared)) return {};
  return fill(job, context, prepared);
}

Status prepare_at_usual_size(const MatteJob& job, const StageContext& context, Prepared& prepared) {
  prepared.spec = job.network.spec.input;
  prepared.usual_size = true;
  return fill(job, context, prepared);
}

}  // namespace cutout
