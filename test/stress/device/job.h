#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "pipeline/backend.h"

namespace cutout::test {

/// A matte by the kernels of a backend, in the order of the stages (pipeline/matte.h); the
/// network's output is given.
struct DeviceJob {
  int width = 1;
  int height = 1;
  std::ptrdiff_t stride = 4;
  std::vector<std::uint8_t> pixels;
  int reduced_width = 1;  // of the result
  int reduced_height = 1;
  Box part;  // of the image, that the network sees
  Box seen;  // the same of the result
  Box roi;   // in pixels of `seen`
  NetworkInput spec;
  std::vector<float> output;  // of the network, of the size of `spec`
  int mask_width = 1;
  int mask_height = 1;
  std::vector<std::uint8_t> mask;  // of the subject, of the result; empty without
  TrainedOn trained_on = TrainedOn::kMasks;
  HiddenColour hidden = HiddenColour::kClear;

  /// The same for the same seed: sides from 1 on, often odd; images that are opaque, transparent or
  /// both; outputs of 0, of 1, of both and between. Those of odd seeds have a mask: all in, all
  /// out, patches or noise.
  explicit DeviceJob(unsigned seed);

  [[nodiscard]] std::optional<PlacedMask> placed_mask() const;
};

struct DeviceResult {
  std::vector<std::uint8_t> pixels;  // of the result, without padding
  std::vector<float> input;
  std::vector<float> alpha;
  Uncertainty uncertainty{-1, -1};
  MatteSummary summary;

  [[nodiscard]] bool same_as(const DeviceResult& other) const;
};

inline constexpr int kAllSteps = std::numeric_limits<int>::max();

/// Ends after `steps` calls of the backend, as a job that is cancelled between two of them.
Status run_job(Backend& backend, const DeviceJob& job, DeviceResult& result, int steps = kAllSteps);

}  // namespace cutout::test
