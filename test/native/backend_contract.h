#pragma once

#include <string>
#include <vector>

#include "pipeline/backend.h"

namespace cutout::test {

/// How far a backend's results may be from the kernels' definitions.
struct ContractLimits {
  float input = 8e-6F;         // of a value of the network's input, in 0..1
  float probability = 1e-6F;   // of the sigmoid
  float alpha = 0;             // of the matte at the network's size
  int pixel = 0;               // of a channel of the result
  double differing_share = 0;  // of the result's pixels that differ at all
};

/// Runs every kernel of a backend on images and predictions of several sizes and compares the
/// results with the kernels' scalar definitions. What does not fit, a sentence each that starts
/// with the name of the kernel; empty when the backend fulfils its contract. Tensors are read and
/// written by upload() and download() alone.
std::vector<std::string> contract_faults(Backend& backend, const ContractLimits& limits = {});

}  // namespace cutout::test
