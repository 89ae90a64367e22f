#pragma once

#include "cuda/kernels/colour_sampling.h"
#include "cuda/kernels/component_filter.h"
#include "cuda/kernels/deblur.h"
#include "cuda/kernels/edge_runs.h"
#include "cuda/kernels/filter.h"
#include "cuda/kernels/foreground_colours.h"
#include "cuda/kernels/full_size.h"
#include "cuda/kernels/local_model.h"
#include "cuda/kernels/mask_constraint.h"
#include "cuda/kernels/probability.h"
#include "cuda/kernels/summary.h"
#include "cuda/kernels/uncertainty.h"
#include "cuda/table.h"

namespace cutout::cuda {

/// The function of a table for `kRun`, which queues kernels on an Executor.
template <auto kRun>
struct Launch;

template <typename Executor, typename... Arguments, void (*kRun)(Executor&, Arguments...)>
struct Launch<kRun> {
  static int run(Arguments... arguments, void* stream) {
    Executor on(stream);
    kRun(on, arguments...);
    return on.result();
  }
};

/// A table with the kernels of an Executor, without the functions for memory.
template <typename Executor>
Table make_table() {
  Table table{};
  table.version = kTableVersion;
  table.network_input = Launch<&fill_input<Executor>>::run;
  table.probability = Launch<&to_probability<Executor>>::run;
  table.sum_uncertainty = Launch<&sum_uncertainty<Executor>>::run;
  table.constrain = Launch<&constrain<Executor>>::run;
  table.restore_marked = Launch<&restore_marked<Executor>>::run;
  table.filter_components = Launch<&filter_components<Executor>>::run;
  table.resize_plane = Launch<&resize_plane<Executor>>::run;
  table.sample_colours = Launch<&sample_colours<Executor>>::run;
  table.reduce = Launch<&reduce<Executor>>::run;
  table.summarise = Launch<&summarise<Executor>>::run;
  table.gather_edge_runs = Launch<&gather_edge_runs<Executor>>::run;
  table.deblur = Launch<&deblur_matte<Executor>>::run;
  table.local_models = Launch<&local_models<Executor>>::run;
  table.foreground_colours = Launch<&foreground_colours<Executor>>::run;
  table.full_size = Launch<&full_size<Executor>>::run;
  return table;
}

}  // namespace cutout::cuda
