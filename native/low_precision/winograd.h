// Winograd's F(4×4, 3×3) for convolutions of quantised values: sixteen outputs of a 3×3 convolution
// from 36 products of 16-bit numbers a channel instead of 144 of bytes. A kernel includes it once,
// after defining CUTOUT_TARGET (conv_avx512.h). In integers it is exact: with d the 6×6 inputs, g
// the weights and
//
//   B = 4  0 -5  0  1  0    G = 6  0  0    A = 1 -4 -4  1  1  0
//       0 -4 -4  1  1  0        1  1  1        0 -2  2  1 -1  0
//       0  4 -4 -1  1  0        1 -1  1        0 -1 -1  1  1  0
//       0 -2 -1  2  1  0        1  2  4        0 -1  1  2 -2  1
//       0  2 -1 -2  1  0        1 -2  4
//       0  4  0 -5  0  1        0  0  6
//
// A [sum over channels of (G g Gᵀ) ∘ (B d Bᵀ)] Aᵀ is the outputs times the product of their row's
// and their column's factor, which are 24, 12, 6 and 6. The factors of the products fit 16 bits (at
// most 49 × 128 and 17340). All sums are modulo 2³²: there 9 has an inverse, so that an output
// times at most 2⁶ is left, which is the output where it fits 26 bits. Where it may not
// (Conv::largest_sum), few enough channels are multiplied at a time and their outputs added.
//
// | limit      |                                                                        |
// |------------|------------------------------------------------------------------------|
// | kernel     | 3×3, stride 1, a dilation of at most 16                                |
// | channels   | a multiple of 16, at most 1024                                         |
// | weights    | of 8 bits, or the two panels of 16-bit ones                            |
// | map        | large enough for the transforms to be worth it                         |
//
// A Vector has registers of kInt16s 16-bit numbers and of half as many 32-bit ones, and
//   kTiles                       whose sums with two registers of weights fill the registers
//   widened(bytes), two_of_four(packed, last)
//   words: plus, minus, load, store, pair
//   sums: zero, add, subtract, times, shifted, load_sums, store
//   dot(sums, pairs, weights)    adds the products of two neighbouring 16-bit numbers
//   Finisher(task, group)        constants of kLanes channels
//     finish(sums, output), and with 16-bit weights finish(high, low, output)
#pragma once

#include <algorithm>
#include <array>

#include "low_precision/kernels.h"

namespace cutout::low_precision {

namespace {

constexpr int kOutputs = 4;  // on a side of a tile
constexpr int kSide = 6;     // of a tile's inputs
constexpr int kPositions = kSide * kSide;
constexpr int kTaps = 3;  // in a row of the kernel
constexpr int kMaxChannels = 1024;
constexpr int kMaxDilation = 16;
/// Powers of two in the factors of the outputs of a row or column; the rest of each is 3.
constexpr int kFactorBits[kOutputs] = {3, 2, 1, 1};
constexpr int kMaxFactorBits = 6;  // of two
/// Channels whose outputs fit 26 bits with any weights: 9 × 128 × 255 each.
constexpr int kSafeChannels = 96;
constexpr int kInverseOfNine = 0x38e38e39;
/// Panels that tiles are multiplied with position by position.
constexpr int kPassPanels = 2;
/// Bytes between what belongs to neighbouring positions, behind it: at multiples of 4 KB they would
/// share the same lines of the first-level cache.
constexpr int kPadding = 64;
/// Bytes for the transformed inputs of tiles that are computed together: fits the second-level
/// cache.
constexpr std::size_t kInputBytes =
    std::size_t{kPositions} * (8 * kMaxChannels * sizeof(std::int16_t) + kPadding);
constexpr int kMaxTiles = 24;

int rounded_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

/// Tiles of a part of the output, side by side in steps of the dilation.
class Tiles {
 public:
  struct Place {
    int x;  // of the first output; the others are a dilation to the right and below
    int y;
  };

  Tiles(int dilation, int width, int first_row, int last_row)
      : dilation_(dilation),
        first_row_(first_row),
        columns_(along(width)),
        count_(columns_ * along(last_row - first_row)) {}

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] Place at(int tile) const {
    return {begin(tile % columns_), first_row_ + begin(tile / columns_)};
  }

 private:
  /// Tiles that cover so many outputs.
  [[nodiscard]] int along(int length) const {
    const int period = kOutputs * dilation_;
    return length / period * dilation_ + std::min(length % period, dilation_);
  }
  [[nodiscard]] int begin(int index) const {
    return index / dilation_ * kOutputs * dilation_ + index % dilation_;
  }

  int dilation_;
  int first_row_;
  int columns_;
  int count_;
};

/// 16-bit numbers of a panel's transformed weights: [position][pair of channels][kLanes][2].
std::size_t panel_values(const Conv& conv) {
  return static_cast<std::size_t>(kPositions) * static_cast<std::size_t>(conv.channels) * kLanes;
}

/// Whether a map has enough tiles, well enough filled, that they are faster than multiplying bytes,
/// four times as many at twice the rate.
bool has_enough_tiles(const Conv& conv, int width, int height) {
  // In products of 16 bits an input and output channel. Transforming the weights takes as long as
  // that many products.
  constexpr int kTransform = 160;
  const int tiles = Tiles(conv.dilation, width, 0, height).count();
  const std::int64_t bytes = std::int64_t{width} * height * kTaps * kTaps / 2;
  return (std::int64_t{rounded_up(tiles, 4)} * kPositions + kTransform) * 10 < bytes * 9;
}

/// Bytes of the transformed weights of a group of output channels; 0 where the limits exclude it.
std::size_t winograd_bytes(const Conv& conv, int width, int height) {
  if (conv.kernel_height != kTaps || conv.kernel_width != kTaps || conv.stride != 1 ||
      conv.dilation > kMaxDilation || conv.channels % 16 != 0 || conv.channels > kMaxChannels ||
      !has_enough_tiles(conv, width, height)) {
    return 0;
  }
  return static_cast<std::size_t>(conv.panels()) * panel_values(conv) * sizeof(std::int16_t);
}

/// Channels that are multiplied at a time.
int channels_together(const Conv& conv) {
  constexpr std::int64_t kLimit = std::int64_t{1} << (31 - kMaxFactorBits);
  return conv.largest_sum < kLimit ? conv.channels : std::min(conv.channels, kSafeChannels);
}

template <typename Vector, typename Int16s = typename Vector::Int16s>
CUTOUT_TARGET CUTOUT_INLINE Int16s twice(Int16s a) {
  return Vector::plus(a, a);
}
template <typename Vector, typename Int16s = typename Vector::Int16s>
CUTOUT_TARGET CUTOUT_INLINE Int16s four(Int16s a) {
  return twice<Vector>(twice<Vector>(a));
}
template <typename Vector, typename Int16s = typename Vector::Int16s>
CUTOUT_TARGET CUTOUT_INLINE Int16s six(Int16s a) {
  return Vector::plus(twice<Vector>(a), four<Vector>(a));
}
template <typename Vector, typename Sums = typename Vector::Sums>
CUTOUT_TARGET CUTOUT_INLINE Sums doubled(Sums a) {
  return Vector::add(a, a);
}

/// A column of B d.
template <typename Vector>
CUTOUT_TARGET CUTOUT_INLINE void transform_inputs(const typename Vector::Int16s (&d)[kSide],
                                                  typename Vector::Int16s (&to)[kSide]) {
  using Int16s = typename Vector::Int16s;
  const Int16s even = Vector::minus(d[4], four<Vector>(d[2]));
  const Int16s odd = Vector::minus(d[3], four<Vector>(d[1]));
  const Int16s near = Vector::minus(d[4], d[2]);
  const Int16s far = twice<Vector>(Vector::minus(d[3], d[1]));
  to[0] = Vector::plus(four<Vector>(Vector::minus(d[0], d[2])), near);
  to[1] = Vector::plus(even, odd);
  to[2] = Vector::minus(even, odd);
  to[3] = Vector::plus(near, far);
  to[4] = Vector::minus(near, far);
  to[5] = Vector::minus(Vector::minus(d[5], d[3]), twice<Vector>(far));
}

/// B d Bᵀ for every channel of a tile, [position][block of kInt16s channels][tile][kInt16s], of
/// which `to` is the tile's. `tiles` of them lie side by side, positions are `between` words apart.
template <typename Vector>
CUTOUT_TARGET void transform_tile(const ConvTask& task, const Tiles::Place& place, int tiles,
                                  std::size_t between, std::int16_t* to) {
  using Int16s = typename Vector::Int16s;
  const int dilation = task.conv->dilation;
  // A tile at the lower end may have more rows of inputs than there are.
  const int last_row = task.output.height - 1 + (kTaps - 1) * dilation;
  const std::uint8_t* rows[kSide];
  for (int row = 0; row < kSide; ++row) {
    rows[row] = task.window(place.x, std::min(place.y + row * dilation, last_row));
  }
  const std::ptrdiff_t step = task.input.stride * dilation;
  for (int channel = 0; channel < task.conv->channels; channel += Vector::kInt16s) {
    Int16s half[kSide][kSide];
#pragma GCC unroll 6
    for (int column = 0; column < kSide; ++column) {
      Int16s d[kSide];
      Int16s transformed[kSide];
#pragma GCC unroll 6
      for (int row = 0; row < kSide; ++row) {
        d[row] = Vector::widened(rows[row] + column * step + channel);
      }
      transform_inputs<Vector>(d, transformed);
#pragma GCC unroll 6
      for (int row = 0; row < kSide; ++row) half[row][column] = transformed[row];
    }
    std::int16_t* at = to + channel * tiles;
#pragma GCC unroll 6
    for (int row = 0; row < kSide; ++row) {
      Int16s whole[kSide];
      transform_inputs<Vector>(half[row], whole);
#pragma GCC unroll 6
      for (int column = 0; column < kSide; ++column, at += between) {
        Vector::store(whole[column], at);
      }
    }
  }
}

/// Where a panel's products of a position and a tile lie.
template <typename Vector>
struct Products {
  static constexpr int kSums = Vector::kInt16s / 2;  // in a register
  static constexpr int kRegisters = kLanes / kSums;  // of a panel
  static constexpr int kBetween =
      kMaxTiles * kSums + kPadding / static_cast<int>(sizeof(std::int32_t));

  [[nodiscard]] std::int32_t* at(int reg, int position, int tile) {
    return data.data() + (reg * kPositions + position) * kBetween + tile * kSums;
  }

  alignas(64)
      std::array<std::int32_t, std::size_t{kPassPanels} * kRegisters * kPositions * kBetween> data;
};

/// Sums over the channels of one position, for kTiles tiles and kColumns registers of output
/// channels, whose weights lie `between` apart.
template <typename Vector, int kTiles, int kColumns>
CUTOUT_TARGET void multiply_tiles(const std::int16_t* inputs, int tiles, int channels,
                                  const std::int16_t* weights, std::size_t between,
                                  std::int32_t* products, std::size_t between_products) {
  typename Vector::Sums sums[kTiles][kColumns];
  for (auto& tile : sums) {
    for (auto& sum : tile) sum = Vector::zero();
  }
  for (int channel = 0; channel < channels; channel += Vector::kInt16s) {
    const std::int16_t* from = inputs + channel * tiles;
    const int pairs = std::min(Vector::kInt16s, channels - channel) / 2;
    for (int pair = 0; pair < pairs; ++pair, from += 2, weights += 2 * kLanes) {
      typename Vector::Int16s panel[kColumns];
#pragma GCC unroll 2
      for (int column = 0; column < kColumns; ++column) {
        panel[column] = Vector::load(weights + static_cast<std::size_t>(column) * between);
      }
#pragma GCC unroll 12
      for (int tile = 0; tile < kTiles; ++tile) {
        const typename Vector::Int16s both = Vector::pair(from + tile * Vector::kInt16s);
#pragma GCC unroll 2
        for (int column = 0; column < kColumns; ++column) {
          sums[tile][column] = Vector::dot(sums[tile][column], both, panel[column]);
        }
      }
    }
  }
#pragma GCC unroll 12
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma GCC unroll 2
    for (int column = 0; column < kColumns; ++column) {
      Vector::store(sums[tile][column], products +
                                            static_cast<std::size_t>(column) * between_products +
                                            tile * Products<Vector>::kSums);
    }
  }
}

/// Does the same for any number of tiles, in blocks of at most Vector::kTiles; the last block may
/// be larger than what is left.
template <typename Vector, int kColumns>
CUTOUT_TARGET void multiply_position(const std::int16_t* inputs, int tiles, int count, int channels,
                                     const std::int16_t* weights, std::size_t between,
                                     std::int32_t* products, std::size_t between_products) {
  constexpr int kTiles = Vector::kTiles;
  for (int tile = 0; tile < count;) {
    const int left = count - tile;
    const int block = left > kTiles * 2 / 3 ? kTiles
                      : left > kTiles / 3   ? kTiles * 2 / 3
                                            : kTiles / 3;
    const auto multiply = block == kTiles       ? multiply_tiles<Vector, kTiles, kColumns>
                          : block == kTiles / 3 ? multiply_tiles<Vector, kTiles / 3, kColumns>
                                                : multiply_tiles<Vector, kTiles * 2 / 3, kColumns>;
    multiply(inputs + tile * Vector::kInt16s, tiles, channels, weights, between,
             products + tile * Products<Vector>::kSums, between_products);
    tile += block;
  }
}

/// A row of A times a column of products.
template <typename Vector>
CUTOUT_TARGET CUTOUT_INLINE void transform_products(const typename Vector::Sums (&m)[kSide],
                                                    typename Vector::Sums (&to)[kOutputs]) {
  using Sums = typename Vector::Sums;
  const Sums near = Vector::add(m[1], m[2]);
  const Sums near_difference = Vector::subtract(m[1], m[2]);
  const Sums far = Vector::add(m[3], m[4]);
  const Sums far_difference = Vector::subtract(m[3], m[4]);
  to[0] = Vector::add(m[0], Vector::subtract(far, doubled<Vector>(doubled<Vector>(near))));
  to[1] = Vector::subtract(far_difference, doubled<Vector>(near_difference));
  to[2] = Vector::subtract(far, near);
  to[3] = Vector::add(m[5], Vector::subtract(doubled<Vector>(far_difference), near_difference));
}

/// The outputs of a tile for one register of output channels, row by row.
template <typename Vector>
CUTOUT_TARGET CUTOUT_INLINE void transform_outputs(
    const std::int32_t* products, typename Vector::Sums (&outputs)[kOutputs * kOutputs]) {
  using Sums = typename Vector::Sums;
  Sums half[kOutputs][kSide];
#pragma GCC unroll 6
  for (int column = 0; column < kSide; ++column) {
    Sums m[kSide];
    Sums transformed[kOutputs];
#pragma GCC unroll 6
    for (int row = 0; row < kSide; ++row) {
      m[row] = Vector::load_sums(products + (row * kSide + column) * Products<Vector>::kBetween);
    }
    transform_products<Vector>(m, transformed);
#pragma GCC unroll 4
    for (int row = 0; row < kOutputs; ++row) half[row][column] = transformed[row];
  }
#pragma GCC unroll 4
  for (int row = 0; row < kOutputs; ++row) {
    Sums whole[kOutputs];
    transform_products<Vector>(half[row], whole);
#pragma GCC unroll 4
    for (int column = 0; column < kOutputs; ++column) {
      outputs[row * kOutputs + column] = Vector::shifted(
          Vector::times(whole[column], kInverseOfNine), kFactorBits[row] + kFactorBits[column]);
    }
  }
}

/// The outputs of a tile of one panel, [output][register].
template <typename Vector>
struct Outputs {
  typename Vector::Sums sums[kOutputs * kOutputs][Products<Vector>::kRegisters];
};

/// The outputs of tiles that are computed together, for a part of the channels.
template <typename Vector>
using PartialOutputs = std::array<std::array<Outputs<Vector>, kMaxTiles>, kPassPanels>;

template <typename Vector>
CUTOUT_TARGET inline void read_outputs(Products<Vector>& products, int panel, int tile,
                                       const Outputs<Vector>* before, Outputs<Vector>& to) {
  constexpr int kRegisters = Products<Vector>::kRegisters;
  for (int reg = 0; reg < kRegisters; ++reg) {
    typename Vector::Sums outputs[kOutputs * kOutputs];
    transform_outputs<Vector>(products.at(panel * kRegisters + reg, 0, tile), outputs);
#pragma GCC unroll 16
    for (int i = 0; i < kOutputs * kOutputs; ++i) {
      to.sums[i][reg] =
          before == nullptr ? outputs[i] : Vector::add(outputs[i], before->sums[i][reg]);
    }
  }
}

/// The outputs of a tile that lie in the part, of one group, whose first panel is `panel`.
template <typename Vector>
CUTOUT_TARGET void write_tile(const ConvTask& task, const Tiles::Place& place, int last_row,
                              int group, const typename Vector::Finisher& finisher,
                              Products<Vector>& products, int panel, int tile,
                              const PartialOutputs<Vector>* before) {
  const auto before_of = [&](int of) {
    return before == nullptr
               ? nullptr
               : &(*before)[static_cast<std::size_t>(of)][static_cast<std::size_t>(tile)];
  };
  Outputs<Vector> high;
  Outputs<Vector> low;
  read_outputs(products, panel, tile, before_of(panel), high);
  if (task.conv->int16_weights) read_outputs(products, panel + 1, tile, before_of(panel + 1), low);
  for (int i = 0; i < kOutputs * kOutputs; ++i) {
    const int x = place.x + i % kOutputs * task.conv->dilation;
    const int y = place.y + i / kOutputs * task.conv->dilation;
    if (x >= task.output.width || y >= last_row) continue;
    std::uint8_t* const output = task.group_at(task.output.at(x, y), group);
    if (task.conv->int16_weights) {
      finisher.finish(high.sums[i], low.sums[i], output);
    } else {
      finisher.finish(high.sums[i], output);
    }
  }
}

/// The rows of G times three numbers.
template <typename Vector>
CUTOUT_TARGET CUTOUT_INLINE void transform_taps(const typename Vector::Int16s (&g)[kTaps],
                                                typename Vector::Int16s (&to)[kSide]) {
  using Int16s = typename Vector::Int16s;
  const Int16s ends = Vector::plus(g[0], g[2]);
  const Int16s far = Vector::plus(g[0], four<Vector>(g[2]));
  const Int16s two = twice<Vector>(g[1]);
  to[0] = six<Vector>(g[0]);
  to[1] = Vector::plus(ends, g[1]);
  to[2] = Vector::minus(ends, g[1]);
  to[3] = Vector::plus(far, two);
  to[4] = Vector::minus(far, two);
  to[5] = six<Vector>(g[2]);
}

/// Transforms the weights of groups [first_group, last_group) to `to`, aligned to 64 bytes.
template <typename Vector>
CUTOUT_TARGET void transform_weights(const Conv& conv, int first_group, int last_group,
                                     std::uint8_t* to) {
  using Int16s = typename Vector::Int16s;
  constexpr int kFour = 4 * kLanes;            // bytes of 4 channels of a group
  constexpr int kBytes = 2 * Vector::kInt16s;  // of packed weights that become two registers
  // Where the weights of a tap's first 4 channels lie in a panel; the others follow, in chunks that
  // may have been begun by the tap before.
  const auto four_at = [&conv](int row, int column, int channel) {
    const bool rows = conv.reads_rows() && conv.channels % kChunkInputs != 0;
    const int a_tap = (conv.channels + kChunkInputs - 1) / kChunkInputs;
    const int a_row =
        rows ? (kTaps * conv.channels + kChunkInputs - 1) / kChunkInputs : kTaps * a_tap;
    const int before = rows ? column * conv.channels + channel : channel;
    const int chunk = row * a_row + (rows ? 0 : column * a_tap) + before / kChunkInputs;
    return static_cast<std::size_t>(chunk) * kChunkBytes +
           static_cast<std::size_t>(before % kChunkInputs / 4 * kFour);
  };
  const std::size_t panel_bytes = conv.chunks.size() * kChunkBytes;
  const std::size_t panels = static_cast<std::size_t>(conv.panels());
  const std::int8_t* panel =
      conv.weights.data() + static_cast<std::size_t>(first_group) * panels * panel_bytes;
  const std::size_t count = static_cast<std::size_t>(last_group - first_group) * panels;
  const std::size_t between = static_cast<std::size_t>(conv.channels) * kLanes;
  auto* out = reinterpret_cast<std::int16_t*>(to);
  for (std::size_t i = 0; i < count; ++i, panel += panel_bytes, out += panel_values(conv)) {
    for (int channel = 0; channel < conv.channels; channel += 4) {
      for (int part = 0; part < kFour; part += kBytes) {
        for (int two = 0; two < 2; ++two) {
          Int16s partial[kSide][kTaps];
          for (int column = 0; column < kTaps; ++column) {
            Int16s g[kTaps];
            Int16s transformed[kSide];
            for (int row = 0; row < kTaps; ++row) {
              g[row] = Vector::two_of_four(panel + four_at(row, column, channel) + part, two);
            }
            transform_taps<Vector>(g, transformed);
            for (int row = 0; row < kSide; ++row) partial[row][column] = transformed[row];
          }
          std::int16_t* at = out + (channel + 2 * two) * kLanes + part / 2;
          for (const auto& row : partial) {
            Int16s whole[kSide];
            transform_taps<Vector>(row, whole);
            for (const Int16s& each : whole) {
              Vector::store(each, at);
              at += between;
            }
          }
        }
      }
    }
  }
}

/// The transformed inputs of tiles: values [position][channel][tile].
struct TileInputs {
  const std::int16_t* values;
  std::size_t between;  // values between positions
  int together;         // tiles between channels
  int count;            // tiles that are used
};

/// Multiplies `some` channels of the tiles, from `channel` on, with as many registers of weights,
/// into the products. A position's inputs stay in the first-level cache for some panels, and a
/// panel's weights of a position for all tiles.
template <typename Vector>
CUTOUT_TARGET void multiply_positions(const Conv& conv, const TileInputs& inputs, int channel,
                                      int some, const std::int16_t* weights, int registers,
                                      Products<Vector>& products) {
  using Room = Products<Vector>;
  const auto register_at = [&](int reg) {
    return static_cast<std::size_t>(reg / Room::kRegisters) * panel_values(conv) +
           static_cast<std::size_t>(reg % Room::kRegisters * Vector::kInt16s);
  };
  for (int position = 0; position < kPositions; ++position) {
    const std::int16_t* const from = inputs.values +
                                     static_cast<std::size_t>(position) * inputs.between +
                                     channel * inputs.together;
    const std::int16_t* const with = weights + (position * conv.channels + channel) * kLanes;
    for (int reg = 0; reg < registers; reg += 2) {
      const auto multiply =
          registers - reg == 1 ? multiply_position<Vector, 1> : multiply_position<Vector, 2>;
      multiply(from, inputs.together, inputs.count, some, with + register_at(reg),
               register_at(reg + 1) - register_at(reg), products.at(reg, position, 0),
               static_cast<std::size_t>(Room::kBetween) * kPositions);
    }
  }
}

/// A ConvKernel for tasks with transformed weights.
template <typename Vector>
CUTOUT_TARGET void convolve_tiles(const ConvTask& task, int first_row, int last_row,
                                  int first_group, int last_group) {
  using Room = Products<Vector>;
  const Conv& conv = *task.conv;
  const int channels = conv.channels;
  const Tiles tiles(conv.dilation, task.output.width, first_row, last_row);
  const int room = rounded_up(channels, Vector::kInt16s);
  const auto fitting = static_cast<int>((kInputBytes / kPositions - kPadding) / 2) / room;
  const int most = std::min(fitting, kMaxTiles);
  const int together = std::max(most / Vector::kTiles * Vector::kTiles, most / 4 * 4);
  const std::size_t between = static_cast<std::size_t>(together * room) + kPadding / 2;
  const int step = channels_together(conv);
  const int group_panels = conv.panels();
  const int pass_groups = kPassPanels / group_panels;
  alignas(64) std::array<std::int16_t, kInputBytes / sizeof(std::int16_t)> inputs;
  Room products;
  PartialOutputs<Vector> partial;
  for (int begin = 0; begin < tiles.count(); begin += together) {
    const int count = std::min(together, tiles.count() - begin);
    for (int i = 0; i < together; ++i) {
      if (i >= rounded_up(count, Vector::kTiles / 3)) break;
      transform_tile<Vector>(task, tiles.at(std::min(begin + i, tiles.count() - 1)), together,
                             between, inputs.data() + i * Vector::kInt16s);
    }
    for (int first = first_group; first < last_group; first += pass_groups) {
      const int groups = std::min(pass_groups, last_group - first);
      const int registers = groups * group_panels * Room::kRegisters;
      const auto* const weights =
          reinterpret_cast<const std::int16_t*>(task.transformed_weights(first));
      for (int channel = 0; channel < channels; channel += step) {
        const int some = std::min(step, channels - channel);
        const PartialOutputs<Vector>* const before = channel == 0 ? nullptr : &partial;
        multiply_positions<Vector>(conv, {inputs.data(), between, together, count}, channel, some,
                                   weights, registers, products);
        if (channel + some < channels) {
          for (int panel = 0; panel < groups * group_panels; ++panel) {
            for (int i = 0; i < count; ++i) {
              auto& sums = partial[static_cast<std::size_t>(panel)][static_cast<std::size_t>(i)];
              read_outputs(products, panel, i, before == nullptr ? nullptr : &sums, sums);
            }
          }
          continue;
        }
        for (int group = 0; group < groups; ++group) {
          const typename Vector::Finisher finisher(task, first + group);
          for (int i = 0; i < count; ++i) {
            write_tile<Vector>(task, tiles.at(begin + i), last_row, first + group, finisher,
                               products, group * group_panels, i, before);
          }
        }
      }
    }
  }
}

/// A kernel of an Arithmetic (conv_avx512.h, conv_avx2.h, which is included before) that multiplies
/// in this form where that is faster.
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
