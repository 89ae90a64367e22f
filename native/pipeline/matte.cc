#include "pipeline/matte.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "image/resample.h"
#include "matte/clean.h"
#include "pipeline/edges.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 1 << 16;  // values a range

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

Status make_matte(ImageView pixels, const MattePlan& plan, const LoadedNetwork& loaded, int slot,
                  const CancelToken& token, ThreadPool& pool, MatteResult& result) {
  ort::Network& network = *loaded.network;
  const Clock::time_point start = Clock::now();

  fill_network_input(pixels, loaded.spec.input, network.input(slot).data(), pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point prepared = Clock::now();

  CUTOUT_RETURN_IF_ERROR(network.run(slot, token));
  const std::span<float> alpha = network.output(slot);
  CUTOUT_RETURN_IF_ERROR(to_probability(alpha, loaded.spec.output, pool));
  CUTOUT_RETURN_IF_ERROR(token.check());
  const Clock::time_point inferred = Clock::now();

  clean_alpha(
      alpha, network.output_width(),
      cells_of(plan.roi, plan.width, plan.height, network.output_width(), network.output_height()),
      pool);
  CUTOUT_RETURN_IF_ERROR(token.check());

  ImageView reduced = pixels;
  if (plan.width != pixels.width || plan.height != pixels.height) {
    CUTOUT_RETURN_IF_ERROR(reduce_in_place(pixels, plan.width, plan.height, pool));
    CUTOUT_RETURN_IF_ERROR(token.check());
    reduced = {pixels.data, plan.width, plan.height, 4,
               static_cast<std::ptrdiff_t>(plan.width) * 4};
  }

  const NetworkAnswer answer{network.input(slot), loaded.spec.input, alpha, network.output_width(),
                             network.output_height()};
  result.summary = write_edges(reduced, answer, plan, pool);
  result.width = plan.width;
  result.height = plan.height;
  result.prepare_ms = milliseconds(start, prepared);
  result.infer_ms = milliseconds(prepared, inferred);
  result.matte_ms = milliseconds(inferred, Clock::now());
  return {};
}

}  // namespace cutout
