#include "low_precision/self_check.h"

#include <algorithm>
#include <vector>

#include "low_precision/bf16.h"
#include "low_precision/blocks.h"

namespace cutout::low_precision {

namespace {

// Two tiles of pixels and a part of one, three groups of channels, a chunk and a part of one.
constexpr int kWidth = 37;
constexpr int kHeight = 3;
constexpr int kInputs = 48;
constexpr int kOutputs = 3 * kLanes;
constexpr int kChunkValues = kChunkInputs / 2;
constexpr int kChunks = (kInputs + kChunkValues - 1) / kChunkValues;
constexpr int kPixelsBehind = 96;

/// Whole numbers from -8 to 8: every sum of their products is exact.
int number(int seed) { return (seed * 37 + seed / 11) % 17 - 8; }
int input_at(int pixel, int channel) { return number(pixel * 5 + channel * 3); }
int weight_at(int output, int channel) { return number(output * 7 + channel * 2 + 1); }

}  // namespace

bool multiplies_bf16(ConvKernel kernel) {
  std::vector<Bf16> inputs(std::size_t{kWidth * kHeight + kPixelsBehind} * kInputs + kChunkValues);
  for (int pixel = 0; pixel < kWidth * kHeight; ++pixel) {
    for (int c = 0; c < kInputs; ++c) {
      inputs[static_cast<std::size_t>(pixel * kInputs + c)] =
          bf16_of(static_cast<float>(input_at(pixel, c)));
    }
  }
  std::vector<Bf16> weights(std::size_t{kOutputs} * kChunks * kChunkValues);
  for (int output = 0; output < kOutputs; ++output) {
    for (int c = 0; c < kInputs; ++c) {
      const int chunk = output / kLanes * kChunks + c / kChunkValues;
      const int pair = chunk * kChunkValues / 2 + c % kChunkValues / 2;
      weights[static_cast<std::size_t>((pair * kLanes + output % kLanes) * 2 + c % 2)] =
          bf16_of(static_cast<float>(weight_at(output, c)));
    }
  }
  const std::vector<float> bias(kOutputs, 3);
  Conv conv = matmul_conv(true, kInputs, kOutputs);
  conv.relu = true;
  conv.weights = {reinterpret_cast<const std::int8_t*>(weights.data()), 2 * weights.size()};
  conv.float_bias = bias;
  std::vector<float> outputs(std::size_t{kWidth * kHeight} * kOutputs);
  const auto map = [](void* data, int channels, Type type) {
    Map made = row_map(data, kWidth, channels, type, channels);
    made.height = kHeight;
    return made;
  };
  const ConvTask task(conv, map(inputs.data(), kInputs, Type::kBf16),
                      map(outputs.data(), kOutputs, Type::kFloats), 1);
  kernel(task, 0, kHeight, 0, conv.groups());
  for (int pixel = 0; pixel < kWidth * kHeight; ++pixel) {
    for (int output = 0; output < kOutputs; ++output) {
      int sum = 3;
      for (int c = 0; c < kInputs; ++c) sum += input_at(pixel, c) * weight_at(output, c);
      const float wanted = static_cast<float>(std::max(0, sum));
      if (outputs[static_cast<std::size_t>(pixel * kOutputs + output)] != wanted) return false;
    }
  }
  return true;
}

}  // namespace cutout::low_precision
