#include "pipeline/matte.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "image/resample.h"
#include "matte/component_filter.h"
#include "matte/confident.h"
#include "pipeline/refinement.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 1 << 16;  // values in a range

/// The matte with 0 outside `area`.
std::vector<float> inside(std::span<const float> alpha, int width, const Box& area) {
  std::vector<float> seen(alpha.size(), 0.0F);
  for (int y = area.top; y < area.top + area.height; ++y) {
    const auto row = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(area.left);
    std::copy_n(alpha.begin() + static_cast<std::ptrdiff_t>(row), area.width,
                seen.begin() + static_cast<std::ptrdiff_t>(row));
  }
  return seen;
}

Status classify(DetectorRun& detector, const SubjectTypes& types, std::span<const float> alpha,
                int width, int height, const Box& area, Subject& subject) {
  std::vector<float> seen;
  if (area != Box{0, 0, width, height}) {
    seen = inside(alpha, width, area);
    alpha = seen;
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

/// Step 2, on the slot's input.
Status run_network(const LoadedNetwork& loaded, int slot, const NetworkInput& input,
                   const CancelToken& token, ThreadPool& pool, ort::Map& alpha) {
  CUTOUT_RETURN_IF_ERROR(loaded.network->run(slot, input.width, input.height, token, alpha));
  CUTOUT_RETURN_IF_ERROR(to_probability(alpha.values, loaded.spec.output, pool));
  return token.check();
}

}  // namespace

Status to_probability(std::span<float> values, NetworkOutput output, ThreadPool& pool) {
  std::atomic<bool> numbers{true};
  pool.parallel_for(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    bool good = true;
    for (float& value : values.subspan(begin, end - begin)) {
      good &= std::isfinite(value);
      if (output == NetworkOutput::kLogit) value = 1.0F / (1.0F + std::exp(-value));
      value = std::clamp(value, 0.0F, 1.0F);
    }
    if (!good) numbers = false;
  });
  if (!numbers)
    return {Code::kModel, "The network's output holds values that are not finite numbers."};
  return {};
}

Status make_matte(ImageView pixels, const MattePlan& plan, const LoadedNetwork& loaded,
                  const SubjectTypes* types, int slot, const CancelToken& token, ThreadPool& pool,
                  MatteResult& result) {
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
  fill_network_input(pixels, input, network.input(slot).data(), pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point prepared = Clock::now();

  std::optional<DetectorRun> detector;
  if (plan.subject) {
    detector.emplace(*types, slot, pixels, Planes{values_of(network, slot, input), input}, token,
                     pool);
  }
  ort::Map alpha;
  CUTOUT_RETURN_IF_ERROR(run_network(loaded, slot, input, token, pool, alpha));
  const auto area = [&] {
    return network_area(plan.roi, plan.width, plan.height, alpha.width, alpha.height);
  };
  result.runs = 1;
  const NetworkInput& usual = loaded.spec.input;
  const bool smaller = input.width != usual.width || input.height != usual.height;
  if (smaller && !is_confident(alpha.values, alpha.width, area(), pool)) {
    if (detector) detector->complete();  // it reads the slot's input, which is overwritten now
    input = usual;
    fill_network_input(pixels, input, network.input(slot).data(), pool);
    CUTOUT_RETURN_IF_ERROR(token.check());
    CUTOUT_RETURN_IF_ERROR(run_network(loaded, slot, input, token, pool, alpha));
    result.runs = 2;
  }
  const Clock::time_point inferred = Clock::now();

  filter_components(alpha.values, alpha.width, area(), pool);
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
  result.summary = refine_matte(reduced, coarse, plan, pool);
  result.width = plan.width;
  result.height = plan.height;
  result.prepare_ms = milliseconds(start, prepared);
  result.infer_ms = milliseconds(prepared, inferred);
  result.subject_ms = milliseconds(filtered, classified);
  result.matte_ms = milliseconds(inferred, filtered) + milliseconds(classified, Clock::now());
  return {};
}

}  // namespace cutout
