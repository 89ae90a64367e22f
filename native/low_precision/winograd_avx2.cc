#include "low_precision/winograd_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "low_precision/requantise_avx2.h"

#define CUTOUT_TARGET __attribute__((target("avx2")))

namespace cutout::low_precision {

namespace {

constexpr int kSide = 4;  // of a tile's inputs
constexpr int kPositions = kSide * kSide;
constexpr int kTaps = 3;  // in a row of the kernel
/// Tiles whose sums with a group of output channels fill the registers.
constexpr int kBlockTiles = 6;
/// Tiles that are computed together, fewer if there are many channels, and groups of output
/// channels that they are multiplied with position by position: all of it fits the second-level
/// cache.
constexpr int kMaxTiles = 12;
constexpr int kGroups = 2;
/// Channels in one register.
constexpr int kVectorChannels = 16;
constexpr int kMaxChannels = 1024;
/// Room for the transformed inputs of a position. The positions are a cache line more apart: at
/// multiples of 4 KB they would share the same lines of the first-level cache.
constexpr int kPositionInputs = kBlockTiles * kMaxChannels;
constexpr int kPadding = 32;

using Inputs = std::array<std::int16_t, std::size_t{kPositions} * (kPositionInputs + kPadding)>;
/// [group][panel][position][tile][output channel]
using Products =
    std::array<std::int32_t, std::size_t{2} * kGroups * kPositions * kMaxTiles * kLanes>;

/// Numbers of 16 bits of a panel's transformed weights: [position][pair of channels][kLanes][2].
std::size_t panel_numbers(const Conv& conv) {
  return static_cast<std::size_t>(kPositions) * static_cast<std::size_t>(conv.channels) * kLanes;
}

/// Tiles of a part of the output, side by side in steps of the dilation.
class Tiles {
 public:
  struct Place {
    int x;  // of the first output; the others are a dilation to the right and below
    int y;
  };

  Tiles(const ConvTask& task, int first_row, int last_row)
      : dilation_(task.conv->dilation),
        first_row_(first_row),
        columns_(along(task.output.width)),
        count_(columns_ * along(last_row - first_row)) {}

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] Place at(int tile) const {
    return {begin(tile % columns_), first_row_ + begin(tile / columns_)};
  }

 private:
  /// Tiles that cover so many outputs.
  [[nodiscard]] int along(int length) const {
    const int period = 2 * dilation_;
    return length / period * dilation_ + std::min(length % period, dilation_);
  }
  [[nodiscard]] int begin(int index) const {
    return index / dilation_ * 2 * dilation_ + index % dilation_;
  }

  int dilation_;
  int first_row_;
  int columns_;
  int count_;
};

/// B d Bᵀ for every channel of a tile, `between` numbers from position to position.
CUTOUT_TARGET void transform_inputs(const ConvTask& task, const Tiles::Place& place,
                                    std::size_t between, std::int16_t* to) {
  const int dilation = task.conv->dilation;
  // A tile at the lower end may have more rows of inputs than there are.
  const int last_row = task.output.height - 1 + (kTaps - 1) * dilation;
  const std::uint8_t* rows[kSide];
  for (int row = 0; row < kSide; ++row) {
    rows[row] = task.window(place.x, std::min(place.y + row * dilation, last_row));
  }
  const std::ptrdiff_t step = task.input.stride * dilation;
  for (int channel = 0; channel < task.conv->channels; channel += kVectorChannels) {
    __m256i half[kSide][kSide];
#pragma GCC unroll 4
    for (int column = 0; column < kSide; ++column) {
      __m256i d[kSide];
#pragma GCC unroll 4
      for (int row = 0; row < kSide; ++row) {
        d[row] = _mm256_cvtepu8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[row] + column * step + channel)));
      }
      half[0][column] = _mm256_sub_epi16(d[0], d[2]);
      half[1][column] = _mm256_add_epi16(d[1], d[2]);
      half[2][column] = _mm256_sub_epi16(d[2], d[1]);
      half[3][column] = _mm256_sub_epi16(d[1], d[3]);
    }
    std::int16_t* at = to + channel;
#pragma GCC unroll 4
    for (int row = 0; row < kSide; ++row) {
      const __m256i* const d = half[row];
      const __m256i whole[kSide] = {_mm256_sub_epi16(d[0], d[2]), _mm256_add_epi16(d[1], d[2]),
                                    _mm256_sub_epi16(d[2], d[1]), _mm256_sub_epi16(d[1], d[3])};
#pragma GCC unroll 4
      for (int column = 0; column < kSide; ++column, at += between) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), whole[column]);
      }
    }
  }
}

/// Sums over the channels of one position, for kBlockTiles tiles and kLanes output channels.
CUTOUT_TARGET void multiply(const std::int16_t* inputs, int channels, const std::int16_t* weights,
                            std::int32_t* products) {
  __m256i sums[kBlockTiles][2];
  for (auto& tile : sums) tile[0] = tile[1] = _mm256_setzero_si256();
  for (int channel = 0; channel < channels; channel += 2, weights += 2 * kLanes) {
    const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights));
    const __m256i second = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights + kLanes));
#pragma GCC unroll 8
    for (int tile = 0; tile < kBlockTiles; ++tile) {
      std::int32_t two;
      std::memcpy(&two, inputs + tile * channels + channel, sizeof(two));
      const __m256i pair = _mm256_set1_epi32(two);
      sums[tile][0] = _mm256_add_epi32(sums[tile][0], _mm256_madd_epi16(pair, first));
      sums[tile][1] = _mm256_add_epi32(sums[tile][1], _mm256_madd_epi16(pair, second));
    }
  }
  for (const auto& tile : sums) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(products), tile[0]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(products + kLanes / 2), tile[1]);
    products += kLanes;
  }
}

/// A quarter of a row times a column of Aᵀ.
CUTOUT_AVX2 inline __m256i quarter_left(const __m256i (&a)[kSide]) {
  return _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(a[0], a[1]), a[2]), 2);
}
CUTOUT_AVX2 inline __m256i quarter_right(const __m256i (&a)[kSide]) {
  return _mm256_srai_epi32(_mm256_sub_epi32(_mm256_sub_epi32(a[1], a[2]), a[3]), 2);
}

/// A [products of a tile] Aᵀ / 4, the four outputs row by row.
CUTOUT_TARGET inline __attribute__((always_inline)) void transform_outputs(
    const std::int32_t* products, Sums256 (&outputs)[4]) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m256i upper[kSide];
    __m256i lower[kSide];
#pragma GCC unroll 4
    for (int column = 0; column < kSide; ++column) {
      __m256i m[kSide];
#pragma GCC unroll 4
      for (int row = 0; row < kSide; ++row) {
        m[row] = _mm256_load_si256(reinterpret_cast<const __m256i*>(
            products + (row * kSide + column) * kMaxTiles * kLanes + half * (kLanes / 2)));
      }
      upper[column] = _mm256_add_epi32(_mm256_add_epi32(m[0], m[1]), m[2]);
      lower[column] = _mm256_sub_epi32(_mm256_sub_epi32(m[1], m[2]), m[3]);
    }
    outputs[0].half[half] = quarter_left(upper);
    outputs[1].half[half] = quarter_right(upper);
    outputs[2].half[half] = quarter_left(lower);
    outputs[3].half[half] = quarter_right(lower);
  }
}

/// The outputs of a tile that lie in the part, of one group.
CUTOUT_TARGET void write(const ConvTask& task, const Tiles::Place& place, int last_row, int group,
                         const Requantiser256& requantiser, const std::int32_t* products) {
  Sums256 sums[4];
  Sums256 low[4];
  transform_outputs(products, sums);
  if (task.conv->wide) {
    transform_outputs(products + kPositions * kMaxTiles * kLanes, low);
  }
  for (int i = 0; i < 4; ++i) {
    const int x = place.x + i % 2 * task.conv->dilation;
    const int y = place.y + i / 2 * task.conv->dilation;
    if (x >= task.output.width || y >= last_row) continue;
    std::uint8_t* const output = task.group_at(task.output.at(x, y), group);
    if (task.conv->wide) {
      requantise(sums[i], low[i], requantiser, output);
    } else {
      requantise(sums[i], requantiser, output);
    }
  }
}

}  // namespace

std::size_t winograd_bytes(const Conv& conv) {
  if (conv.kernel_height != kTaps || conv.kernel_width != kTaps || conv.stride != 1 ||
      conv.channels % kVectorChannels != 0 || conv.channels > kMaxChannels) {
    return 0;
  }
  return static_cast<std::size_t>(conv.panels()) * panel_numbers(conv) * sizeof(std::int16_t);
}

CUTOUT_TARGET void winograd_weights(const Conv& conv, int first_group, int last_group,
                                    std::uint8_t* to) {
  constexpr int kFour = 4 * kLanes;  // bytes of 4 channels of a group
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
  // The first two bytes of every 4 as 16 bits, and the last two.
  const __m256i first_two = _mm256_set1_epi64x(static_cast<std::int64_t>(0x0580'0480'0180'0080ULL));
  const __m256i last_two = _mm256_set1_epi64x(static_cast<std::int64_t>(0x0780'0680'0380'0280ULL));
  const __m256i next_eight =
      _mm256_set_epi64x(0x0808'0808'0808'0808LL, 0, 0x0808'0808'0808'0808LL, 0);
  const std::size_t panel_bytes = conv.chunks.size() * kChunkBytes;
  auto* out = reinterpret_cast<std::int16_t*>(to);
  const std::size_t panels = static_cast<std::size_t>(conv.panels());
  const std::int8_t* panel =
      conv.weights.data() + static_cast<std::size_t>(first_group) * panels * panel_bytes;
  const std::size_t count = static_cast<std::size_t>(last_group - first_group) * panels;
  const std::size_t between = static_cast<std::size_t>(conv.channels) * kLanes;
  for (std::size_t i = 0; i < count; ++i, panel += panel_bytes, out += panel_numbers(conv)) {
    for (int channel = 0; channel < conv.channels; channel += 4) {
      for (int half = 0; half < 2; ++half) {
        __m256i packed[kTaps][kTaps];
        for (int row = 0; row < kTaps; ++row) {
          for (int column = 0; column < kTaps; ++column) {
            packed[row][column] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(
                panel + four_at(row, column, channel) + half * (kFour / 2)));
          }
        }
        for (int two = 0; two < 2; ++two) {
          const __m256i order = _mm256_add_epi8(two == 0 ? first_two : last_two, next_eight);
          __m256i partial[kSide][kTaps];
          for (int column = 0; column < kTaps; ++column) {
            __m256i g[kTaps];
            for (int row = 0; row < kTaps; ++row) {
              g[row] = _mm256_srai_epi16(_mm256_shuffle_epi8(packed[row][column], order), 8);
            }
            const __m256i ends = _mm256_add_epi16(g[0], g[2]);
            partial[0][column] = _mm256_add_epi16(g[0], g[0]);
            partial[1][column] = _mm256_add_epi16(ends, g[1]);
            partial[2][column] = _mm256_sub_epi16(ends, g[1]);
            partial[3][column] = _mm256_add_epi16(g[2], g[2]);
          }
          std::int16_t* at =
              out + static_cast<std::ptrdiff_t>(channel + 2 * two) * kLanes + half * kLanes;
          for (const auto& g : partial) {
            const __m256i ends = _mm256_add_epi16(g[0], g[2]);
            for (const __m256i& whole :
                 {_mm256_add_epi16(g[0], g[0]), _mm256_add_epi16(ends, g[1]),
                  _mm256_sub_epi16(ends, g[1]), _mm256_add_epi16(g[2], g[2])}) {
              _mm256_store_si256(reinterpret_cast<__m256i*>(at), whole);
              at += between;
            }
          }
        }
      }
    }
  }
}

CUTOUT_TARGET void conv_winograd(const ConvTask& task, int first_row, int last_row, int first_group,
                                 int last_group) {
  const Conv& conv = *task.conv;
  const int channels = conv.channels;
  const int panels = conv.panels();
  const Tiles tiles(task, first_row, last_row);
  const int together = std::min(kMaxTiles, kPositionInputs / channels / kBlockTiles * kBlockTiles);
  const std::size_t between = static_cast<std::size_t>(together * channels + kPadding);
  alignas(64) Inputs inputs;
  alignas(64) Products products;
  for (int begin = 0; begin < tiles.count(); begin += together) {
    const int count = std::min(together, tiles.count() - begin);
    const int blocks = (count + kBlockTiles - 1) / kBlockTiles;
    for (int i = 0; i < blocks * kBlockTiles; ++i) {
      transform_inputs(task, tiles.at(std::min(begin + i, tiles.count() - 1)), between,
                       inputs.data() + i * channels);
    }
    for (int first = first_group; first < last_group; first += kGroups) {
      const int groups = std::min(kGroups, last_group - first);
      // A position's inputs stay in the first-level cache for some groups, and a group's weights of
      // a position for all tiles.
      for (int position = 0; position < kPositions; ++position) {
        for (int panel = 0; panel < groups * panels; ++panel) {
          const std::int16_t* const weights =
              reinterpret_cast<const std::int16_t*>(task.transformed_weights(first)) +
              static_cast<std::size_t>(panel * kPositions + position) *
                  static_cast<std::size_t>(channels * kLanes);
          for (int tile = 0; tile < count; tile += kBlockTiles) {
            multiply(
                inputs.data() + static_cast<std::size_t>(position) * between + tile * channels,
                channels, weights,
                products.data() + ((panel * kPositions + position) * kMaxTiles + tile) * kLanes);
          }
        }
      }
      for (int group = 0; group < groups; ++group) {
        const Requantiser256 requantiser = requantiser256_of(task, first + group);
        for (int i = 0; i < count; ++i) {
          write(task, tiles.at(begin + i), last_row, first + group, requantiser,
                products.data() + (group * panels * kPositions * kMaxTiles + i) * kLanes);
        }
      }
    }
  }
}

}  // namespace cutout::low_precision

#endif
