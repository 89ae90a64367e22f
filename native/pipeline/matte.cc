#include "pipeline/matte.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "image/resample.h"
#include "matte/clean.h"
#include "pipeline/edges.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 1 << 16;  // values a range

/// The matte as the type sees it: nothing outside `area` is the subject.
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

Status tell_type(SubjectJob& job, const SubjectTypes& types, std::span<const float> alpha,
                 int width, int height, const Box& area, Subject& subject) {
  std::vector<float> seen;
  if (area != Box{0, 0, width, height}) {
    seen = inside(alpha, width, area);
    alpha = seen;
  }
  std::vector<float> features;
  CUTOUT_RETURN_IF_ERROR(job.finish({alpha, width, height}, features));
  subject = types.head->apply(features);
  return {};
}

}  // namespace

Status to_probability(std::span<float> values, NetworkOutput output, ThreadPool& pool) {
  std::atomic<bool> numbers{true};
  pool.parallel_for(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    bool good = true;
    for (float& value : values.subspan(begin, end - begin)) {
      good &= !std::isnan(value);
      if (output == NetworkOutput::kLogit) value = 1.0F / (1.0F + std::exp(-value));
      value = std::clamp(value, 0.0F, 1.0F);
    }
    if (!good) numbers = false;
  });
  if (!numbers) return {Code::kModel, "The network's output holds values that are not numbers."};
  return {};
}

Status make_matte(ImageView pixels, const MattePlan& plan, const LoadedNetwork& loaded,
                  const SubjectTypes* types, int slot, const CancelToken& token, ThreadPool& pool,
                  MatteResult& result) {
  ort::Network& network = *loaded.network;
  const Clock::time_point start = Clock::now();

  fill_network_input(pixels, loaded.spec.input, network.input(slot).data(), pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point prepared = Clock::now();

  std::optional<SubjectJob> subject;
  if (plan.subject) {
    subject.emplace(*types, slot, pixels, Planes{network.input(slot), loaded.spec.input}, token,
                    pool);
  }
  CUTOUT_RETURN_IF_ERROR(network.run(slot, token));
  const std::span<float> alpha = network.output(slot);
  CUTOUT_RETURN_IF_ERROR(to_probability(alpha, loaded.spec.output, pool));
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point inferred = Clock::now();

  const int p_width = network.output_width();
  const int p_height = network.output_height();
  const Box cells = cells_of(plan.roi, plan.width, plan.height, p_width, p_height);
  clean_alpha(alpha, p_width, cells, pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point cleaned = Clock::now();

  if (subject) {
    CUTOUT_RETURN_IF_ERROR(
        tell_type(*subject, *types, alpha, p_width, p_height, cells, result.subject.emplace()));
    CUTOUT_RETURN_IF_ERROR(token.check());
  }
  const Clock::time_point told = Clock::now();

  ImageView reduced = pixels;
  if (plan.width != pixels.width || plan.height != pixels.height) {
    CUTOUT_RETURN_IF_ERROR(reduce_in_place(pixels, plan.width, plan.height, pool));
    CUTOUT_RETURN_IF_ERROR(token.check());
    reduced = {pixels.data, plan.width, plan.height, 4,
               static_cast<std::ptrdiff_t>(plan.width) * 4};
  }

  const NetworkAnswer answer{network.input(slot), loaded.spec.input, alpha, p_width, p_height};
  result.summary = write_edges(reduced, answer, plan, pool);
  result.width = plan.width;
  result.height = plan.height;
  result.prepare_ms = milliseconds(start, prepared);
  result.infer_ms = milliseconds(prepared, inferred);
  result.subject_ms = milliseconds(cleaned, told);
  result.matte_ms = milliseconds(inferred, cleaned) + milliseconds(told, Clock::now());
  return {};
}

}  // namespace cutout
