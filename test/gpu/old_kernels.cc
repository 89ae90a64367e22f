#include "cuda/table.h"

/// A library of kernels of an earlier version.
extern "C" __attribute__((visibility("default"))) const cutout::cuda::Table* cutout_cuda_table() {
  static const cutout::cuda::Table table = [] {
    cutout::cuda::Table old{};
    old.version = cutout::cuda::kTableVersion - 1;
    return old;
  }();
  return &table;
}
