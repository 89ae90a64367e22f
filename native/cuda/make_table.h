#pragma once

#include "cuda/kernels/apply_matte.h"
#include "cuda/kernels/colour_sampling.h"
#include "cuda/kernels/component_filter.h"
#include "cuda/kernels/compose.h"
#include "cuda/kernels/confident.h"
#include "cuda/kernels/deblur.h"
#include "cuda/kernels/enlarge.h"
#include "cuda/kernels/filter.h"
#include "cuda/kernels/foreground_colours.h"
#include "cuda/kernels/full_size.h"
#include "cuda/kernels/local_model.h"
#include "cuda/kernels/mask_constraint.h"
#include "cuda/kernels/probability.h"
#include "cuda/kernels/resize_plane.h"
#include "cuda/kernels/shadow.h"
#include "cuda/kernels/summary.h"
#include "cuda/table.h"

namespace cutout::cuda {

/// The kernels of a table, launched by an Executor.
template <typename Executor>
struct Launchers {
  static int network_input(Pixels image, FilterTaps rows, FilterTaps columns, Normalisation how,
                           float* scratch, float* out, void* stream) {
    Executor on(stream);
    const int width = columns.outputs;
    filter(on, image, rows, columns, scratch,
           StoreInput{how, out, width, index_of(0, rows.outputs, width)});
    return on.result();
  }

  static int probability(float* values, std::size_t count, bool logit, std::uint32_t* not_finite,
                         void* stream) {
    Executor on(stream);
    const auto n = static_cast<int>(count);
    on.run(ceil_div(n, Probability::kWidth), 1, Probability{values, n, logit, not_finite});
    return on.result();
  }

  static int count_confident(const float* p, int width, Box area, ConfidenceCounts* counts,
                             void* stream) {
    Executor on(stream);
    on.run(ceil_div(area.width, CountConfident::kWidth),
           ceil_div(area.height, CountConfident::kHeight), CountConfident{p, width, area, counts});
    return on.result();
  }

  static int constrain(float* p, const std::uint8_t* mask, int mask_width, MaskTaps rows,
                       MaskTaps columns, void* scratch, std::uint8_t* marked, void* stream) {
    Executor on(stream);
    cuda::constrain(on, p, mask, mask_width, rows, columns, scratch, marked);
    return on.result();
  }

  static int restore_marked(float* p, const float* constrained, int width, int height,
                            const std::uint8_t* marked, void* stream) {
    Executor on(stream);
    cuda::restore_marked(on, p, constrained, width, height, marked);
    return on.result();
  }

  static int filter_components(float* p, int width, Box area, int* scratch, void* stream) {
    Executor on(stream);
    cuda::filter_components(on, p, width, area, scratch);
    return on.result();
  }

  static int resize_plane(const float* plane, int width, FilterTaps rows, FilterTaps columns,
                          float* scratch, float* out, void* stream) {
    Executor on(stream);
    cuda::resize_plane(on, plane, width, rows, columns, scratch, out);
    return on.result();
  }

  static int sample_colours(GuidePlanes guide, const float* p, float* pyramid, float* scratch,
                            float* samples, void* stream) {
    Executor on(stream);
    cuda::sample_colours(on, guide, p, pyramid, scratch, samples);
    return on.result();
  }

  static int reduce(Pixels image, FilterTaps rows, FilterTaps columns, float* scratch, Pixels out,
                    void* stream) {
    Executor on(stream);
    filter(on, image, rows, columns, scratch, StoreStraight{out});
    return on.result();
  }

  static int enlarge(Pixels image, CubicTaps rows, CubicTaps columns, float* scratch,
                     std::uint8_t* kinds, Pixels out, void* stream) {
    Executor on(stream);
    cuda::enlarge(on, image, rows, columns, scratch, kinds, out);
    return on.result();
  }

  static int shadow(Pixels canvas, Box subject, ShadowGrid grid, const float* blur, int taps,
                    std::uint32_t* sums, float* scratch, float* blocks, void* stream) {
    Executor on(stream);
    cuda::shadow(on, canvas, subject, grid, blur, taps, sums, scratch, blocks);
    return on.result();
  }

  static int compose(Pixels canvas, Box area, Pixels background, std::uint32_t colour, Box shadow,
                     ShadowGrid grid, const float* blocks, void* stream) {
    Executor on(stream);
    over_plane(on, area.width, area.height,
               Compose{canvas, area, background, colour, shadow, grid, blocks});
    return on.result();
  }

  static int summarise(Pixels image, Box region, AlphaSummary* summary, void* stream) {
    Executor on(stream);
    cuda::summarise(on, image, region, summary);
    return on.result();
  }

  static int deblur(GuidePlanes guide, const float* p, SampledPlanes samples, const float* blurs,
                    void* scratch, float* alpha, float* confidence, float* for_colours,
                    void* stream) {
    Executor on(stream);
    deblur_matte(on, guide, p, samples, blurs, scratch, alpha, confidence, for_colours);
    return on.result();
  }

  static int local_models(GuidePlanes guide, const float* alpha, float* models, void* stream) {
    Executor on(stream);
    on.run(ceil_div(guide.width, LocalModels::kWidth), ceil_div(guide.height, LocalModels::kHeight),
           LocalModels{guide, alpha, models});
    return on.result();
  }

  static int foreground_colours(GuidePlanes guide, const float* alpha, float* pyramid,
                                float* scratch, float* colours, void* stream) {
    Executor on(stream);
    cuda::foreground_colours(on, guide, alpha, pyramid, scratch, colours);
    return on.result();
  }

  static int full_size(Pixels image, Box part, Box roi, GuidePlanes guide, const float* alpha,
                       const float* confidence, const float* models, const float* colours,
                       float* channels, GuideTaps rows, GuideTaps columns,
                       std::uint32_t hidden_mask, void* stream) {
    Executor on(stream);
    cuda::full_size(on, image, part, roi, guide, alpha, confidence, models, colours, channels, rows,
                    columns, hidden_mask);
    return on.result();
  }

  static int apply_matte(Pixels image, Box part, Box roi, const float* p, int width, int height,
                         GuideTaps rows, GuideTaps columns, std::uint32_t hidden_mask,
                         void* stream) {
    Executor on(stream);
    over_plane(on, image.width, image.height,
               ApplyMatte{image, part, roi, p, width, height, rows, columns, hidden_mask});
    return on.result();
  }
};

/// A table with the kernels of an Executor, without the functions for memory.
template <typename Executor>
Table make_table() {
  using Launch = Launchers<Executor>;
  Table table{};
  table.version = kTableVersion;
  table.network_input = Launch::network_input;
  table.probability = Launch::probability;
  table.count_confident = Launch::count_confident;
  table.constrain = Launch::constrain;
  table.restore_marked = Launch::restore_marked;
  table.filter_components = Launch::filter_components;
  table.resize_plane = Launch::resize_plane;
  table.sample_colours = Launch::sample_colours;
  table.reduce = Launch::reduce;
  table.enlarge = Launch::enlarge;
  table.shadow = Launch::shadow;
  table.compose = Launch::compose;
  table.summarise = Launch::summarise;
  table.deblur = Launch::deblur;
  table.local_models = Launch::local_models;
  table.foreground_colours = Launch::foreground_colours;
  table.full_size = Launch::full_size;
  table.apply_matte = Launch::apply_matte;
  return table;
}

}  // namespace cutout::cuda
