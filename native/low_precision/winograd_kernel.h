// A kernel of an Arithmetic (conv_avx512.h, conv_avx2.h) that multiplies in Winograd's form, by a
// Vector (winograd.h), where that is faster. Included after one of each.
#pragma once

#include "low_precision/kernels.h"
#include "low_precision/winograd.h"

namespace cutout::low_precision {

namespace {

template <typename Arithmetic, typename Vector>
void run_winograd(const ConvTask& task, int first_row, int last_row, int first_group,
                  int last_group) {
  if (task.transformed.empty()) {
    convolve<Arithmetic>(task, first_row, last_row, first_group, last_group);
  } else {
    convolve_tiles<Vector>(task, first_row, last_row, first_group, last_group);
  }
}

template <typename Arithmetic, typename Vector>
Kernel winograd_kernel() {
  return {&run_winograd<Arithmetic, Vector>, false, &winograd_bytes, &transform_weights<Vector>,
          kOutputs};
}

}  // namespace

}  // namespace cutout::low_precision
