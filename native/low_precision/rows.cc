#include "low_precision/rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/simd.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

namespace {

/// Values of bf16 in a chunk of inputs.
constexpr int kChunkValues = kChunkInputs / 2;
constexpr int kPairs = kChunkValues / 2;

constexpr float kLog2E = 1.4426950408889634F;
/// Adding it rounds to an integer, which is then in the low bits.
constexpr float kRounder = 12582912.0F;
constexpr std::uint32_t kMantissaBits = 23;
constexpr float kLeastExponent = -126.0F;

int groups_of(int columns) { return (columns + kLanes - 1) / kLanes; }

/// 2^x for x up to 0, with a relative error below 2e-7; 2^-126 for what is below.
CUTOUT_INLINE float power_of_two(float x) {
  const float bounded = x > kLeastExponent ? x : kLeastExponent;
  const float shifted = bounded + kRounder;
  const float fraction = bounded - (shifted - kRounder);
  // Taylor series of 2^fraction for |fraction| up to 1/2.
  float power = 1.5403530e-4F;
  power = power * fraction + 1.3333558e-3F;
  power = power * fraction + 9.6181291e-3F;
  power = power * fraction + 5.5504109e-2F;
  power = power * fraction + 2.4022651e-1F;
  power = power * fraction + 6.9314718e-1F;
  power = power * fraction + 1.0F;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << kMantissaBits;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + exponent);
}

/// erfc by formula 7.1.26 of Abramowitz and Stegun.
CUTOUT_INLINE float gelu(float x) {
  constexpr float kRootHalf = 0.70710678F;
  const float z = std::abs(x) * kRootHalf;
  const float t = 1.0F / (1.0F + 0.3275911F * z);
  float series = 1.061405429F;
  series = series * t - 1.453152027F;
  series = series * t + 1.421413741F;
  series = series * t - 0.284496736F;
  series = series * t + 0.254829592F;
  const float tail = 0.5F * series * t * power_of_two(-kLog2E * z * z);
  return x * (x > 0.0F ? 1.0F - tail : tail);
}

CUTOUT_SIMD void round_row(const float* from, int columns, Bf16* to) {
  for (int i = 0; i < columns; ++i) to[i] = bf16_of(from[i]);
}

CUTOUT_SIMD void gelu_row(float* values, int columns) {
  for (int i = 0; i < columns; ++i) values[i] = gelu(values[i]);
}

/// The steps from `start` over all values, in kLanes at a time.
template <typename Step>
CUTOUT_INLINE float over_lanes(const float* values, int columns, float start, const Step& step) {
  std::array<float, kLanes> lanes;
  lanes.fill(start);
  int i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      float& own = lanes[static_cast<std::size_t>(lane)];
      own = step(own, values[i + lane]);
    }
  }
  float whole = start;
  for (; i < columns; ++i) whole = step(whole, values[i]);
  for (const float each : lanes) whole = step(whole, each);
  return whole;
}

CUTOUT_SIMD float largest_of(const float* values, int columns) {
  return over_lanes(values, columns, -INFINITY, [](float a, float b) { return b > a ? b : a; });
}

CUTOUT_SIMD RowSteps quantise_row(const Bf16* from, int columns, std::uint8_t* to) {
  constexpr float kSteps = 255;
  std::int16_t least = INT16_MAX;
  std::int16_t most = INT16_MIN;
  for (int i = 0; i < columns; ++i) {
    const std::int16_t each = ordered(from[i]);
    least = each < least ? each : least;
    most = each > most ? each : most;
  }
  const float low = float_of(static_cast<Bf16>(ordered(static_cast<Bf16>(least))));
  const float high = float_of(static_cast<Bf16>(ordered(static_cast<Bf16>(most))));
  const float factor = high > low ? kSteps / (high - low) : 0;
  for (int i = 0; i < columns; ++i) {
    const float rounded = (float_of(from[i]) - low) * factor + kRounder;
    to[i] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(rounded));
  }
  // Not a number, or infinite, where a value is.
  return {low, (high - low) / kSteps};
}

CUTOUT_SIMD void unround_row(float* values, int columns, RowSteps steps, const float* sums,
                             const float* biases, float least) {
  for (int i = 0; i < columns; ++i) {
    const float value = values[i] * steps.step + (steps.low * sums[i] + biases[i]);
    values[i] = value < least ? least : value;
  }
}

CUTOUT_SIMD void exponential_row(float* values, int columns, float factor, float largest,
                                 Bf16* to) {
  for (int i = 0; i < columns; ++i) {
    const Bf16 rounded = bf16_of(power_of_two(factor * (values[i] - largest)));
    to[i] = rounded;
    values[i] = float_of(rounded);
  }
}

CUTOUT_SIMD float sum_of(const float* values, int columns) {
  return over_lanes(values, columns, 0, [](float a, float b) { return a + b; });
}

CUTOUT_SIMD void scale_row(float* values, int columns, float factor) {
  for (int i = 0; i < columns; ++i) values[i] *= factor;
}

/// Two rows of kLanes values as pairs.
CUTOUT_SIMD void pair_rows(const float* even, const float* odd, std::uint32_t* to) {
  for (int lane = 0; lane < kLanes; ++lane) {
    to[lane] = std::uint32_t{bf16_of(even[lane])} | std::uint32_t{bf16_of(odd[lane])} << 16U;
  }
}

}  // namespace

int padded_columns(int columns) {
  return (columns + kChunkValues - 1) / kChunkValues * kChunkValues;
}

std::size_t packed_values(int inputs, int outputs) {
  return static_cast<std::size_t>(padded_columns(inputs)) *
         static_cast<std::size_t>(groups_of(outputs) * kLanes);
}

void round_rows(const FloatRows& from, Bf16* to) {
  const int padded = padded_columns(from.columns);
  for (int row = 0; row < from.rows; ++row, to += padded) {
    round_row(from.data + row * from.stride, from.columns, to);
    std::fill(to + from.columns, to + padded, Bf16{0});
  }
}

void quantise_rows(const Rows<const Bf16>& from, std::uint8_t* to, std::ptrdiff_t stride,
                   RowSteps* steps) {
  for (int row = 0; row < from.rows; ++row) {
    steps[row] = quantise_row(from.data + row * from.stride, from.columns, to + row * stride);
  }
}

void unround_rows(const OutputRows& rows, const RowSteps* steps, const float* sums,
                  const float* biases, bool relu) {
  const float least = relu ? 0 : -INFINITY;
  for (int row = 0; row < rows.rows; ++row) {
    unround_row(rows.data + row * rows.stride, rows.columns, steps[row], sums, biases, least);
  }
}

void gelu_rows(const OutputRows& rows) {
  for (int row = 0; row < rows.rows; ++row) gelu_row(rows.data + row * rows.stride, rows.columns);
}

void exponentials(const OutputRows& rows, float scale, Bf16* to, float* inverse_sums) {
  const int padded = padded_columns(rows.columns);
  for (int row = 0; row < rows.rows; ++row, to += padded) {
    float* const values = rows.data + row * rows.stride;
    exponential_row(values, rows.columns, scale * kLog2E, largest_of(values, rows.columns), to);
    std::fill(to + rows.columns, to + padded, Bf16{0});
    inverse_sums[row] = 1.0F / sum_of(values, rows.columns);
  }
}

void scale_rows(const OutputRows& rows, const float* factors) {
  for (int row = 0; row < rows.rows; ++row) {
    scale_row(rows.data + row * rows.stride, rows.columns, factors[row]);
  }
}

void pack_rows_as_outputs(const FloatRows& from, Bf16* to) {
  const int chunks = padded_columns(from.columns) / kChunkValues;
  std::array<Bf16, kChunkValues> rounded;
  for (int group = 0; group < groups_of(from.rows); ++group) {
    for (int chunk = 0; chunk < chunks; ++chunk, to += kChunkValues * kLanes) {
      const int first = chunk * kChunkValues;
      const int columns = std::min(kChunkValues, from.columns - first);
      for (int lane = 0; lane < kLanes; ++lane) {
        const int row = group * kLanes + lane;
        rounded.fill(0);
        if (row < from.rows) {
          round_row(from.data + row * from.stride + first, columns, rounded.data());
        }
        for (int pair = 0; pair < kPairs; ++pair) {
          std::memcpy(to + 2 * (pair * kLanes + lane), rounded.data() + 2 * pair, 2 * sizeof(Bf16));
        }
      }
    }
  }
}

void pack_rows_as_inputs(const FloatRows& from, Bf16* to) {
  const int pairs = padded_columns(from.rows) / 2;
  std::array<std::array<float, kLanes>, 2> edge;
  for (int group = 0; group < groups_of(from.columns); ++group) {
    const int first = group * kLanes;
    const int columns = std::min(kLanes, from.columns - first);
    for (int pair = 0; pair < pairs; ++pair, to += 2 * kLanes) {
      std::array<const float*, 2> rows;
      for (int half = 0; half < 2; ++half) {
        const auto at = static_cast<std::size_t>(half);
        const int row = 2 * pair + half;
        const float* const own = from.data + row * from.stride + first;
        rows[at] = own;
        if (row < from.rows && columns == kLanes) continue;
        edge[at].fill(0);
        if (row < from.rows) std::copy_n(own, columns, edge[at].begin());
        rows[at] = edge[at].data();
      }
      std::array<std::uint32_t, kLanes> made;
      pair_rows(rows[0], rows[1], made.data());
      std::memcpy(to, made.data(), sizeof(made));
    }
  }
}

}  // namespace cutout::low_precision
