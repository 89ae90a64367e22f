#include "low_precision/depthwise.h"

#include <array>
#include <cstring>

#include "low_precision/bf16.h"

// Vectors of 64 bytes are passed to functions that are always inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace cutout::low_precision {

namespace {

using Floats = float __attribute__((vector_size(4 * kLanes)));
using Bits = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using Halves = Bf16 __attribute__((vector_size(2 * kLanes)));

CUTOUT_INLINE Floats load(const std::uint8_t* from) {
  Halves halves;
  std::memcpy(&halves, from, sizeof(halves));
  return reinterpret_cast<Floats>(__builtin_convertvector(halves, Bits) << 16);
}

CUTOUT_INLINE Floats load(const float* from) {
  Floats values;
  std::memcpy(&values, from, sizeof(values));
  return values;
}

CUTOUT_INLINE Floats all(float value) { return Floats{} + value; }
CUTOUT_INLINE Floats at_least(Floats values, float low) { return values < low ? all(low) : values; }
CUTOUT_INLINE Floats at_most(Floats values, float high) {
  return values > high ? all(high) : values;
}

/// Activates several values as activated() does one.
CUTOUT_INLINE Floats activated(Activation activation, Floats values) {
  if (activation == Activation::kHardSwish) {
    return values * at_most(at_least(values * kSixth + 0.5F, 0), 1);
  }
  if (activation != Activation::kNone) values = at_least(values, 0);
  return activation == Activation::kRelu6 ? at_most(values, 6) : values;
}

CUTOUT_INLINE void store(Floats values, std::uint8_t* to) {
  const Bits bits = reinterpret_cast<Bits>(values);
  const Halves halves =
      __builtin_convertvector((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16, Halves);
  std::memcpy(to, &halves, sizeof(halves));
}

/// `Pixels` neighbouring outputs of kLanes channels from `c` on. Every input is read once a row.
template <int Kernel, int Stride, int Pixels>
CUTOUT_INLINE void outputs(const Conv& conv, const Map& input, const Map& output, int x, int y,
                           int c) {
  constexpr int kColumns = (Pixels - 1) * Stride + Kernel;
  std::array<Floats, Pixels> sums;
  sums.fill(load(conv.float_bias.data() + c));
  const float* weights = conv.float_weights.data() + c;
  const std::uint8_t* row =
      input.at(x * Stride - conv.left, y * Stride - conv.top) + c * conv.element();
  for (int v = 0; v < Kernel; ++v, row += input.pitch) {
    std::array<Floats, kColumns> values;
#pragma GCC unroll 16
    for (int u = 0; u < kColumns; ++u) {
      values[static_cast<std::size_t>(u)] = load(row + u * input.stride);
    }
#pragma GCC unroll 8
    for (int u = 0; u < Kernel; ++u, weights += conv.outputs) {
      const Floats weight = load(weights);
#pragma GCC unroll 8
      for (int pixel = 0; pixel < Pixels; ++pixel) {
        sums[static_cast<std::size_t>(pixel)] +=
            values[static_cast<std::size_t>(pixel * Stride + u)] * weight;
      }
    }
  }
#pragma GCC unroll 8
  for (int pixel = 0; pixel < Pixels; ++pixel) {
    store(activated(conv.activation, sums[static_cast<std::size_t>(pixel)]),
          output.at(x + pixel, y) + c * conv.element());
  }
}

template <int Kernel, int Stride>
CUTOUT_INLINE void row_of(const Conv& conv, const Map& input, const Map& output, int y) {
  constexpr int kPixels = 4;
  int x = 0;
  for (; x + kPixels <= output.width; x += kPixels) {
    for (int c = 0; c < conv.outputs; c += kLanes) {
      outputs<Kernel, Stride, kPixels>(conv, input, output, x, y, c);
    }
  }
  for (; x < output.width; ++x) {
    for (int c = 0; c < conv.outputs; c += kLanes) {
      outputs<Kernel, Stride, 1>(conv, input, output, x, y, c);
    }
  }
}

CUTOUT_SIMD void row_3_1(const Conv& conv, const Map& input, const Map& output, int y) {
  row_of<3, 1>(conv, input, output, y);
}
CUTOUT_SIMD void row_3_2(const Conv& conv, const Map& input, const Map& output, int y) {
  row_of<3, 2>(conv, input, output, y);
}
CUTOUT_SIMD void row_5_1(const Conv& conv, const Map& input, const Map& output, int y) {
  row_of<5, 1>(conv, input, output, y);
}
CUTOUT_SIMD void row_5_2(const Conv& conv, const Map& input, const Map& output, int y) {
  row_of<5, 2>(conv, input, output, y);
}

/// Computes a row with any kernel, stride and dilation.
CUTOUT_SIMD void row_any(const Conv& conv, const Map& input, const Map& output, int y) {
  for (int x = 0; x < output.width; ++x) {
    for (int c = 0; c < conv.outputs; c += kLanes) {
      const std::uint8_t* const window =
          input.at(x * conv.stride - conv.left, y * conv.stride - conv.top) + c * conv.element();
      const float* weights = conv.float_weights.data() + c;
      Floats sums = load(conv.float_bias.data() + c);
      for (int v = 0; v < conv.kernel_height; ++v) {
        const std::uint8_t* const row = window + v * conv.dilation * input.pitch;
        for (int u = 0; u < conv.kernel_width; ++u, weights += conv.outputs) {
          sums += load(row + u * conv.dilation * input.stride) * load(weights);
        }
      }
      store(activated(conv.activation, sums), output.at(x, y) + c * conv.element());
    }
  }
}

using Row = void (*)(const Conv& conv, const Map& input, const Map& output, int y);

Row row_for(const Conv& conv) {
  const int kernel = conv.kernel_height == conv.kernel_width ? conv.kernel_width : 0;
  if (conv.dilation != 1 || conv.stride > 2) return row_any;
  if (kernel == 3) return conv.stride == 1 ? row_3_1 : row_3_2;
  if (kernel == 5) return conv.stride == 1 ? row_5_1 : row_5_2;
  return row_any;
}

}  // namespace

void depthwise_bf16(const Conv& conv, const Map& input, const Map& output, int first, int last) {
  const Row row = row_for(conv);
  for (int y = first; y < last; ++y) row(conv, input, output, y);
}

}  // namespace cutout::low_precision
