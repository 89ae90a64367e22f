#include "pipeline/matte.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "matte/component_filter.h"
#include "pipeline/prepare.h"
#include "pipeline/subject_detector.h"

namespace cutout {

namespace {

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

/// The values of a tensor on the host.
Status download(Backend& backend, const TensorView& tensor, std::vector<float>& values) {
  values.resize(tensor.size());
  return backend.download(tensor, values);
}

Status classify(const StageContext& context, const Prepared& prepared, const Inferred& inferred,
                DetectorRun& detector, const Head& head, Subject& subject) {
  const TensorView& probability = inferred.answer.probability;
  std::vector<float> alpha;
  CUTOUT_RETURN_IF_ERROR(download(context.backend, probability, alpha));
  const Box area = prediction_area(prepared, probability);
  if (area != Box{0, 0, probability.width, probability.height}) {
    alpha = zero_outside(alpha, probability.width, area);
  }
  std::vector<float> features;
  CUTOUT_RETURN_IF_ERROR(detector.finish({alpha, probability.width, probability.height}, features));
  subject = head.apply(features);
  return context.token.check();
}

/// Starts the detector on what the network sees.
void start_detector(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                    std::optional<DetectorRun>& detector) {
  Planes planes;
  if (prepared.input->placement == Placement::kHost) {
    planes = {host_floats(*prepared.input), prepared.spec};
  }
  detector.emplace(*job.classifier, job.detector_slot, part_of(job.pixels, prepared.part), planes,
                   context.token, context.pool);
  detector->start();
}

Status copy_output(const StageContext& context, const Prepared& prepared, const Inferred& inferred,
                   MatteResult& result) {
  const TensorView& probability = inferred.answer.probability;
  result.output_width = probability.width;
  result.output_height = probability.height;
  result.output_view = prepared.view;
  return download(context.backend, probability, result.output);
}

/// Restores the coloured inside of outlines (matte/component_filter.h) before stage 3, on the host
/// on every backend. Where there is a mask, that says what the subject is.
Status restore_coloured_holes(const MatteJob& job, const StageContext& context,
                              const TensorView& probability) {
  if (job.plan.mask || !has_flat_border(job.pixels)) return {};
  std::vector<float> p;
  CUTOUT_RETURN_IF_ERROR(download(context.backend, probability, p));
  std::vector<float> planes(3 * p.size());
  fill_network_input(job.pixels, {probability.width, probability.height, {0, 0, 0}, {1, 1, 1}},
                     planes.data(), context.pool);
  if (!cutout::restore_coloured_holes(p, probability.width, planes, context.pool)) return {};
  return context.backend.upload(p, probability);
}

/// Stage 3, first half: what the subject is. Constrains the prediction by the mask
/// (matte/mask_constraint.h), removes connected components that are no subject and fills holes
/// (matte/component_filter.h), in place.
Status filter_components(const MatteJob& job, const StageContext& context, const Prepared& prepared,
                         const Inferred& inferred) {
  std::optional<PlacedMask> mask;
  if (job.plan.mask) mask = {*job.plan.mask, job.plan.width, job.plan.height, prepared.view};
  const TensorView& probability = inferred.answer.probability;
  CUTOUT_RETURN_IF_ERROR(
      context.backend.filter_components(probability, prediction_area(prepared, probability), mask));
  return context.token.check();
}

/// Stage 3, second half: how its edge is, from the prediction to alpha and colours. First reduces
/// the job's image to the plan's size, in place. The matte borrows the tensors and the image of the
/// stages before.
Status solve(const MatteJob& job, const StageContext& context, Prepared& prepared,
             const Inferred& inferred, std::unique_ptr<SolvedMatte>& solved) {
  const MattePlan& plan = job.plan;
  JobImage& image = *prepared.image;
  if (plan.width != image.pixels.width || plan.height != image.pixels.height) {
    CUTOUT_RETURN_IF_ERROR(context.backend.reduce(image, plan.width, plan.height));
    CUTOUT_RETURN_IF_ERROR(context.token.check());
  }
  CUTOUT_RETURN_IF_ERROR(context.backend.solve(image, prepared.view, inferred.answer, solved));
  return context.token.check();
}

}  // namespace

Status make_matte(const MatteJob& job, const StageContext& context, MatteResult& result) {
  const Clock::time_point start = Clock::now();
  Prepared prepared;
  CUTOUT_RETURN_IF_ERROR(prepare(job, context, prepared));
  const Clock::time_point before_networks = Clock::now();

  std::optional<DetectorRun> detector;
  if (job.classifier) start_detector(job, context, prepared, detector);
  Inferred inferred;
  CUTOUT_RETURN_IF_ERROR(
      answer_of_networks(job, context, prepared, detector, inferred, result.second_look));
  if (prepared.returns_output && !prepared.reused) {
    CUTOUT_RETURN_IF_ERROR(copy_output(context, prepared, inferred, result));
  }
  const Clock::time_point predicted = Clock::now();

  CUTOUT_RETURN_IF_ERROR(restore_coloured_holes(job, context, inferred.answer.probability));
  CUTOUT_RETURN_IF_ERROR(filter_components(job, context, prepared, inferred));
  const Clock::time_point found = Clock::now();
  if (detector) {
    CUTOUT_RETURN_IF_ERROR(classify(context, prepared, inferred, *detector,
                                    *job.classifier->get().head, result.subject.emplace()));
  }
  const Clock::time_point classified = Clock::now();

  std::unique_ptr<SolvedMatte> solved;
  CUTOUT_RETURN_IF_ERROR(solve(job, context, prepared, inferred, solved));
  CUTOUT_RETURN_IF_ERROR(solved->write(prepared.roi, job.plan.hidden_colour, result.summary));

  result.width = job.plan.width;
  result.height = job.plan.height;
  result.runs = inferred.runs;
  result.uncertainty = inferred.uncertainty;
  result.prepare_ms = milliseconds(start, before_networks);
  result.queue_ms += milliseconds({}, Clock::time_point(inferred.waited));
  result.infer_ms = milliseconds(before_networks + inferred.waited, predicted);
  result.subject_ms = milliseconds(found, classified);
  result.matte_ms = milliseconds(predicted, found) + milliseconds(classified, Clock::now());
  return {};
}

}  // namespace cutout
