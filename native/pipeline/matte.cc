#include "pipeline/matte.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/large_memory.h"
#include "image/plane.h"
#include "image/resample.h"
#include "matte/component_filter.h"
#include "matte/confident.h"
#include "matte/fusion.h"
#include "matte/mask_constraint.h"
#include "matte/pixels.h"
#include "pipeline/refinement.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 1 << 16;  // values in a range
constexpr int kViewGrid = 16;            // steps of the view's edges where the output is kept

/// The matte with 0 outside `area`.
std::vector<float> zero_outside(std::span<const float> alpha, int width, const Box& area) {
  std::vector<float> in_area(alpha.size(), 0.0F);
  for (int y = area.top; y < area.top + area.height; ++y) {
    const auto row = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(area.left);
    std::copy_n(alpha.begin() + static_cast<std::ptrdiff_t>(row), area.width,
                in_area.begin() + static_cast<std::ptrdiff_t>(row));
  }
  return in_area;
}

Status classify(DetectorRun& detector, const SubjectTypes& types, std::span<const float> alpha,
                int width, int height, const Box& area, Subject& subject) {
  std::vector<float> in_area;
  if (area != Box{0, 0, width, height}) {
    in_area = zero_outside(alpha, width, area);
    alpha = in_area;
  }
  std::vector<float> features;
  CUTOUT_RETURN_IF_ERROR(detector.finish({alpha, width, height}, features));
  subject = types.head->apply(features);
  return {};
}

/// The slot's input for this size.
std::span<const float> values_of(ort::Network& network, int slot, const NetworkInput& input) {
  return network.input(slot).first(3 * static_cast<std::size_t>(input.width) *
                                   static_cast<std::size_t>(input.height));
}

/// Runs the network on the slot's input and converts its output to 0..1. Adds to `waited` the wait
/// for a batch.
Status run_network(const LoadedNetwork& loaded, int slot, const NetworkInput& input,
                   const CancelToken& token, ThreadPool& pool, ort::OutputPlane& alpha,
                   Clock::duration& waited) {
  const NetworkInput& default_input = loaded.spec.input;
  if (loaded.batcher && input.width == default_input.width &&
      input.height == default_input.height) {
    Clock::duration for_batch{0};
    CUTOUT_RETURN_IF_ERROR(loaded.batcher->run({0, slot}, token, for_batch));
    waited += for_batch;
    alpha = loaded.network->output_plane(slot);
  } else {
    CUTOUT_RETURN_IF_ERROR(loaded.network->run(slot, input.width, input.height, token, alpha));
  }
  CUTOUT_RETURN_IF_ERROR(to_probability(alpha.values, loaded.spec.output, pool));
  return token.check();
}

/// Fuses a second network's output into the first one's.
Status fuse_second(ImageView pixels, const LoadedNetwork& second, int slot,
                   const CancelToken& token, ThreadPool& pool, const ort::OutputPlane& alpha,
                   Clock::duration& waited) {
  fill_network_input(pixels, second.spec.input, second.network->input(slot).data(), pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  ort::OutputPlane other;
  CUTOUT_RETURN_IF_ERROR(run_network(second, slot, second.spec.input, token, pool, other, waited));
  if (other.width == alpha.width && other.height == alpha.height) {
    fuse_outputs(alpha.values, other.values, alpha.width, alpha.height, pool);
    return token.check();
  }
  const auto resized = make_large_array<float>(alpha.values.size());
  const std::span<float> same{resized.get(), alpha.values.size()};
  resize_plane(other.values, other.width, other.height, alpha.width, alpha.height, same, pool);
  fuse_outputs(alpha.values, same, alpha.width, alpha.height, pool);
  return token.check();
}

ImageView part_of(ImageView image, const Box& part) {
  return {image.row(part.top) + static_cast<std::ptrdiff_t>(part.left) * 4, part.width, part.height,
          image.stride};
}

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

/// The part of the image that the network sees.
Box view_of(const MattePlan& plan, bool keeps) {
  if (plan.mask.empty()) return {0, 0, plan.width, plan.height};
  if (!keeps) return mask_view(plan.mask, plan.width, plan.height);
  const SubjectMask& first = plan.first_mask.empty() ? plan.mask : plan.first_mask;
  return shared_view(first, plan.mask, plan.width, plan.height, kViewGrid);
}

/// Constrains the output by the mask and filters its connected components.
void filter(const ort::OutputPlane& alpha, const MattePlan& plan, const Box& view, const Box& area,
            ThreadPool& pool) {
  if (plan.mask.empty()) {
    filter_components(alpha.values, alpha.width, area, pool);
    return;
  }
  const MaskConstraint constraint(plan.mask, view, plan.width, plan.height, alpha.width,
                                  alpha.height, pool);
  constraint.apply(alpha.values, pool);
  const auto constrained = make_large_array<float>(alpha.values.size());
  std::ranges::copy(alpha.values, constrained.get());
  filter_components(alpha.values, alpha.width, area, pool);
  constraint.restore(alpha.values, {constrained.get(), alpha.values.size()}, pool);
}

}  // namespace

Status to_probability(std::span<float> values, NetworkOutput output, ThreadPool& pool) {
  std::atomic<bool> all_finite{true};
  pool.parallel_for(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    bool good = true;
    for (float& value : values.subspan(begin, end - begin)) {
      good &= std::isfinite(value);
      if (output == NetworkOutput::kLogit) value = 1.0F / (1.0F + std::exp(-value));
      value = std::clamp(value, 0.0F, 1.0F);
    }
    if (!good) all_finite = false;
  });
  if (!all_finite)
    return {Code::kModel, "The network's output holds values that are not finite numbers."};
  return {};
}

Status make_matte(ImageView pixels, const MattePlan& plan, const LoadedNetwork& loaded,
                  const LoadedNetwork* second, const SubjectTypes* types, int slot,
                  const CancelToken& token, ThreadPool& pool, MatteResult& result) {
  ort::Network& network = *loaded.network;
  const Clock::time_point start = Clock::now();

  NetworkInput input = loaded.spec.input;
  if (plan.input_width > 0) input.width = plan.input_width;
  if (plan.input_height > 0) input.height = plan.input_height;
  if (!network.takes(input.width, input.height)) {
    return {Code::kModel, "The network '" + loaded.spec.name + "' cannot run at " +
                              std::to_string(input.width) + " x " + std::to_string(input.height) +
                              "."};
  }
  const Box whole{0, 0, plan.width, plan.height};
  const NetworkInput& default_input = loaded.spec.input;
  const bool smaller = input.width != default_input.width || input.height != default_input.height;
  const bool keeps = plan.keep_output && !plan.mask.empty() && !smaller;
  Box view = view_of(plan, keeps);
  Box roi = inside_part(plan.roi, view);
  if (roi.empty()) {  // the mask shows nothing there
    view = whole;
    roi = plan.roi;
  }
  const ImageView crop =
      view == whole ? pixels : part_of(pixels, scaled(view, plan.width, plan.height, pixels));
  fill_network_input(crop, input, network.input(slot).data(), pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point prepared = Clock::now();

  std::optional<DetectorRun> detector;
  if (plan.subject) {
    detector.emplace(*types, slot, crop, Planes{values_of(network, slot, input), input}, token,
                     pool);
  }
  ort::OutputPlane alpha;
  Clock::duration waited{0};
  const bool reused = keeps && !plan.kept.values.empty() && plan.kept.view == view;
  std::vector<float> kept;
  if (reused) {
    kept.assign(plan.kept.values.begin(), plan.kept.values.end());
    alpha = {kept, plan.kept.width, plan.kept.height};
  } else {
    CUTOUT_RETURN_IF_ERROR(run_network(loaded, slot, input, token, pool, alpha, waited));
    result.runs = 1;
  }
  const auto area = [&] {
    return network_area(roi, view.width, view.height, alpha.width, alpha.height);
  };
  if (smaller && !is_confident(alpha.values, alpha.width, area(), pool)) {
    if (detector) detector->complete();  // it reads the slot's input, which is overwritten now
    input = default_input;
    fill_network_input(crop, input, network.input(slot).data(), pool);
    CUTOUT_RETURN_IF_ERROR(token.check());
    CUTOUT_RETURN_IF_ERROR(run_network(loaded, slot, input, token, pool, alpha, waited));
    result.runs = 2;
  }
  if (second != nullptr && !reused) {
    CUTOUT_RETURN_IF_ERROR(fuse_second(crop, *second, slot, token, pool, alpha, waited));
  }
  if (keeps && !reused) {
    result.output.assign(alpha.values.begin(), alpha.values.end());
    result.output_width = alpha.width;
    result.output_height = alpha.height;
    result.output_view = view;
  }
  const Clock::time_point inferred = Clock::now();

  filter(alpha, plan, view, area(), pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point filtered = Clock::now();

  if (detector) {
    CUTOUT_RETURN_IF_ERROR(classify(*detector, *types, alpha.values, alpha.width, alpha.height,
                                    area(), result.subject.emplace()));
    CUTOUT_RETURN_IF_ERROR(token.check());
  }
  const Clock::time_point classified = Clock::now();

  ImageView reduced = pixels;
  if (plan.width != pixels.width || plan.height != pixels.height) {
    CUTOUT_RETURN_IF_ERROR(reduce_in_place(pixels, plan.width, plan.height, pool));
    CUTOUT_RETURN_IF_ERROR(token.check());
    reduced = {pixels.data, plan.width, plan.height, static_cast<std::ptrdiff_t>(plan.width) * 4};
  }

  const CoarseMatte coarse{
      values_of(network, slot, input), input, alpha.values, alpha.width, alpha.height,
      loaded.spec.trained_on};
  MattePlan of_view = plan;
  of_view.width = view.width;
  of_view.height = view.height;
  of_view.roi = roi;
  if (view == whole) {
    result.summary = refine_matte(reduced, coarse, of_view, pool);
  } else {
    result.summary = refine_matte(part_of(reduced, view), coarse, of_view, pool);
    clear_around(reduced, whole, view, plan.hidden_colour);
    result.summary.opaque = false;
    if (!result.summary.box.empty()) {
      result.summary.box.left += view.left;
      result.summary.box.top += view.top;
    }
  }
  result.width = plan.width;
  result.height = plan.height;
  result.prepare_ms = milliseconds(start, prepared);
  result.queue_ms += milliseconds({}, Clock::time_point(waited));
  result.infer_ms = milliseconds(prepared + waited, inferred);
  result.subject_ms = milliseconds(filtered, classified);
  result.matte_ms = milliseconds(inferred, filtered) + milliseconds(classified, Clock::now());
  return {};
}

}  // namespace cutout
