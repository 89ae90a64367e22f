#include "low_precision/bf16_channels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "low_precision/bf16.h"

namespace cutout::low_precision {

namespace {

Bf16* at(const Map& map, int x, int y) { return reinterpret_cast<Bf16*>(map.at(x, y)); }

CUTOUT_SIMD void add_pixel(const Bf16* values, const Bf16* origins, int count, float* sums,
                           float* squares) {
  for (int c = 0; c < count; ++c) {
    const float value = float_of(values[c]) - float_of(origins[c]);
    sums[c] += value;
    squares[c] += value * value;
  }
}

CUTOUT_SIMD void scale_pixel(const Bf16* values, const float* factors, const float* offsets,
                             float lower_bound, int count, Bf16* output) {
  for (int c = 0; c < count; ++c) {
    output[c] = bf16_of(std::max(float_of(values[c]) * factors[c] + offsets[c], lower_bound));
  }
}

double pixels_of(const Map& map) { return static_cast<double>(map.width) * map.height; }

std::vector<float> origins_of(const Map& map) {
  const Bf16* const first = at(map, 0, 0);
  std::vector<float> origins(static_cast<std::size_t>(map.channels));
  for (std::size_t c = 0; c < origins.size(); ++c) origins[c] = float_of(first[c]);
  return origins;
}

}  // namespace

ChannelSums& ChannelSums::operator+=(const ChannelSums& other) {
  for (std::size_t c = 0; c < values.size(); ++c) {
    values[c] += other.values[c];
    squares[c] += other.squares[c];
  }
  return *this;
}

void add_rows(const Map& input, int first, int last, ChannelSums& sums) {
  for (int y = first; y < last; ++y) {
    std::ranges::fill(sums.row_values, 0.0F);
    std::ranges::fill(sums.row_squares, 0.0F);
    for (int x = 0; x < input.width; ++x) {
      add_pixel(at(input, x, y), at(input, 0, 0), input.channels, sums.row_values.data(),
                sums.row_squares.data());
    }
    for (std::size_t c = 0; c < sums.values.size(); ++c) {
      sums.values[c] += static_cast<double>(sums.row_values[c]);
      sums.squares[c] += static_cast<double>(sums.row_squares[c]);
    }
  }
}

void write_means(const Map& input, const ChannelSums& sums, const Map& output) {
  const std::vector<float> origins = origins_of(input);
  Bf16* const means = at(output, 0, 0);
  for (std::size_t c = 0; c < origins.size(); ++c) {
    means[c] = bf16_of(
        static_cast<float>(static_cast<double>(origins[c]) + sums.values[c] / pixels_of(input)));
  }
}

ChannelScales normalising(const Normalise& normalise, const Map& input, const ChannelSums& sums) {
  const std::vector<float> origins = origins_of(input);
  ChannelScales scales{std::vector<float>(origins.size(), 1.0F),
                       std::vector<float>(origins.size(), 0.0F)};
  const auto first = static_cast<std::size_t>(normalise.first);
  for (std::size_t c = first; c < origins.size(); ++c) {
    const double shift = sums.values[c] / pixels_of(input);
    const double variance = std::max(0.0, sums.squares[c] / pixels_of(input) - shift * shift);
    const double factor = static_cast<double>(normalise.scales[c - first]) /
                          std::sqrt(variance + static_cast<double>(normalise.epsilon));
    scales.factors[c] = static_cast<float>(factor);
    scales.offsets[c] = static_cast<float>(static_cast<double>(normalise.biases[c - first]) -
                                           (static_cast<double>(origins[c]) + shift) * factor);
  }
  return scales;
}

ChannelScales gating(const Map& gates) {
  std::vector<float> factors = origins_of(gates);
  return {std::move(factors), std::vector<float>(static_cast<std::size_t>(gates.channels), 0.0F)};
}

void scale_channels(const ChannelScales& scales, Activation activation, const Map& input,
                    const Map& output, int first, int last) {
  const float lower_bound =
      activation == Activation::kRelu ? 0.0F : -std::numeric_limits<float>::infinity();
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < input.width; ++x) {
      scale_pixel(at(input, x, y), scales.factors.data(), scales.offsets.data(), lower_bound,
                  input.channels, at(output, x, y));
    }
  }
}

}  // namespace cutout::low_precision
