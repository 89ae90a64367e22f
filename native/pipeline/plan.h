#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/image_view.h"
#include "image/network_input.h"
#include "matte/mask_constraint.h"
#include "matte/pixels.h"

namespace cutout {

/// Meaning of output 0.
enum class NetworkOutput { kProbability, kLogit };

/// What a network was trained on: binary masks or alpha mattes.
enum class TrainedOn { kMasks, kMattes };

/// Fields as in src/engine/types.ts.
struct NetworkSpec {
  std::string name;
  std::string path;
  std::string save_to;       // ort::NetworkOptions::save_to
  std::string operators;     // ort::NetworkOptions::operators
  bool fp16 = false;         // ort::GpuOptions::fp16
  bool gpu_program = false;  // whether the file is one for GpuNetwork
  std::string engine_cache;  // ort::GpuOptions::engine_cache
  std::string kernel_cache;  // ort::GpuOptions::kernel_cache
  NetworkInput input;
  NetworkOutput output = NetworkOutput::kProbability;
  TrainedOn trained_on = TrainedOn::kMasks;
};

/// The network's output, 0..1, for a part of an image. Borrowed.
struct CachedOutput {
  std::span<const float> values;
  int width = 0;
  int height = 0;
  Box view;  // in pixels of the result
};

struct InputSize {
  int width = 0;
  int height = 0;
};

struct MattePlan {
  int width = 0;  // of the result, at most the image's
  int height = 0;
  HiddenColour hidden_colour = HiddenColour::kClear;
  Box roi;               // in pixels of the result, inside it
  bool subject = false;  // classify its type; needs a head
  // Size of the network's input, where its file leaves that free, instead of the usual one,
  // NetworkSpec::input. When the output is in doubt (matte/uncertainty.h), the network runs again
  // at the usual size.
  std::optional<InputSize> input;
  // Says where the subject is; without, the network decides. Borrowed until the job is done.
  std::optional<SubjectMask> mask;
  // With a mask: see a part of the image with edges on a grid, and return the network's output for
  // it, which another mask of the same image, size and networks may then get as `cached`. Where
  // that shows the same part, no matting network runs. Not at another input size than the usual
  // one.
  bool return_output = false;
  // With `return_output`: the mask of the prompt that this one adds to, whose part is seen where it
  // serves this mask too (shared_view); without, `mask` decides alone.
  std::optional<SubjectMask> first_mask;
  std::optional<CachedOutput> cached;
};

}  // namespace cutout
