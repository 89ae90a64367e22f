#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"

namespace cutout::low_precision {

/// Bytes of one chunk of packed weights: 16 groups of 4 inputs for each of 16 output channels.
inline constexpr int kChunkBytes = 1024;
/// Output channels a chunk is for, and groups of 4 inputs in it.
inline constexpr int kLanes = 16;
/// Input bytes a chunk multiplies.
inline constexpr int kChunkInputs = 64;

/// Channels times taps of one row of a kernel that lie side by side in memory.
struct Chunk {
  int row = 0;     // of the kernel
  int column = 0;  // of the kernel
  int offset = 0;  // bytes from the first channel
  int bytes = 0;   // at most kChunkInputs; the weights behind them are 0
};

struct Conv {
  int kernel_height = 0;
  int kernel_width = 0;
  int stride = 1;
  int dilation = 1;
  int top = 0;
  int left = 0;
  int bottom = 0;
  int right = 0;
  bool int16_weights = false;  // weights of 16 bits: 256 * high byte + low byte, both signed
  int outputs = 0;             // rounded up to whole groups of kLanes
  std::vector<Chunk> chunks;
  /// [group of kLanes output channels][panel][chunk][16][kLanes][4], int8, or [2], bf16. Borrowed.
  /// A panel is what weights of 8 bits or bf16 of one group are packed into; 16-bit weights have
  /// two, of their high bytes and of their low ones.
  std::span<const std::int8_t> weights;
  /// What is added to the sums, for the zero point of the input too. Borrowed.
  std::span<const std::int32_t> bias;
  /// Factors from sums to values of the output. Borrowed.
  std::span<const float> scales;
  bool bf16 = false;  // whether inputs and weights are; bias and scales are then empty
  /// The bias of a convolution in bf16. Borrowed.
  std::span<const float> float_bias;
  bool int7_weights = false;  // whether every weight is -64 to 64, so that two products fit 16 bits
  /// Bound of the magnitude of an output's sums of one panel, with any inputs; of 8 bits.
  std::int64_t largest_sum = 0;
  int zero = 0;       // of the output
  int channel = 0;    // of the input: the first it reads
  int channels = 0;   // of the input it reads
  bool relu = false;  // of an output of floats or bf16; quantised values are cut off at 0 anyway

  /// Bytes of an input.
  [[nodiscard]] int element() const { return bf16 ? 2 : 1; }
  /// Bytes of the channels it reads of a pixel.
  [[nodiscard]] int pixel_bytes() const { return channels * element(); }
  [[nodiscard]] int groups() const { return outputs / kLanes; }
  [[nodiscard]] int panels() const { return int16_weights ? 2 : 1; }
  [[nodiscard]] bool reads_rows() const { return dilation == 1 && kernel_width > 1; }
};

struct MaxPool {
  int kernel = 0;
  int stride = 0;
  bool round_up = false;
};

struct Add {
  float first = 0;   // scale of the first / scale of the sum
  float second = 0;  // likewise
  float offset = 0;  // zero points of all three
};

enum class Kind {
  kInput,
  kConv,
  kMaxPool,
  kResize,
  kAdd,
  kConcat,
  kSplitBytes,
  kCombine,
  kOutput,
  kSumOutput,
  kPlanes,
};
inline constexpr int kKinds = 11;

/// Values are numbered; each is written by one operation.
struct Operation {
  Kind kind = Kind::kConv;
  std::vector<int> inputs;  // values
  int output = -1;          // value; of an outward operation the output's number
  Conv conv;
  MaxPool pool;
  int factor = 1;  // kResize: a power of two
  Add add;
  bool relu = false;              // kCombine
  std::span<const float> scales;  // kInput, kCombine, kSumOutput: one; kOutput: one a channel
  float low = 0;                  // kSumOutput: what 0 stands for
  int channels = 0;               // kPlanes

  /// Whether it gives an output of the operator.
  [[nodiscard]] bool outward() const {
    return kind == Kind::kOutput || kind == Kind::kSumOutput || kind == Kind::kPlanes;
  }
  /// Channels of its output for an input of `input_channels` channels.
  [[nodiscard]] int output_channels(int input_channels) const {
    return kind == Kind::kSumOutput ? 1 : kind == Kind::kPlanes ? channels : input_channels;
  }
};

/// What a value's numbers are.
enum class Type { kQuantised, kFloats, kBf16 };
inline constexpr int kTypes = 3;

/// Size of one element in bytes.
constexpr int bytes_of(Type type) {
  return type == Type::kFloats ? 4 : type == Type::kBf16 ? 2 : 1;
}

struct Value {
  Type type = Type::kQuantised;
  int channels = 0;
  int zero = 0;        // of quantised values: what stands for 0, and what borders are filled with
  bool split = false;  // whether it holds high and low bytes, which a kSplitBytes writes

  [[nodiscard]] int bytes() const { return channels * bytes_of(type); }
};

/// The 8-bit part of a network: maps [height, width, channels] of quantised values (u8), a few of
/// floats, and the operations on them, in the order they are run. Quantised values are clamped to 0
/// and 255; numbers are rounded to the nearest, to even.
///
/// | operation   | arithmetic                                                                    |
/// |-------------|-------------------------------------------------------------------------------|
/// | kInput      | u8: round(x / scale) + zero                                                   |
/// | kConv       | v = (sum(u8 * weight) + bias) * scale, with weights of 8 or 16 bits;          |
/// |             | u8: round(v) + zero; floats: v * input scale (below)                          |
/// | kMaxPool    | largest of the window inside the map                                          |
/// | kResize     | bilinear at pixel centres; u8: weights in 1024ths, rounded down               |
/// | kAdd        | u8: round(a * first + (b * second + offset))                                  |
/// | kConcat     | channels side by side; costs nothing where the parts are written in place     |
/// | kSplitBytes | floats of 0 and above as round(x / unit), 16 bits with unit = largest /       |
/// |             | 65535: the high bytes of all channels, then the low bytes                     |
/// | kCombine    | sum of maps of floats, negative ones 0 with relu; u8: round(v / scale) + zero |
/// | kOutput     | (q - zero) * scale of the channel, or the floats, as planes                   |
/// | kSumOutput  | sum of the channels * scale + low                                             |
/// | kPlanes     | the first channels of a map of floats or bf16                                 |
///
/// A convolution of a kSplitBytes reads either the high bytes or the low bytes. Its input scale is
/// 256 units for the high bytes and one unit for the low bytes; it is 1 for every other input.
///
/// A program may be in bf16 instead: no value is quantised, inputs and weights of its convolutions
/// are bf16, sums are floats, and every result that is stored as bf16 is rounded to the nearest, to
/// even. kConv is then sum + bias, negative ones 0 with relu; kCombine also sums maps of bf16.
class Program {
 public:
  /// Reads what src/compiler/lowPrecision/program.ts writes. `code` are the operations, `floats`
  /// and `ints` the constants that they name by their place, `weights` the packed weights; all are
  /// borrowed for as long as the program lives. kModel for anything that does not fit together.
  static Status read(std::span<const std::int64_t> code, std::span<const float> floats,
                     std::span<const std::int32_t> ints, std::span<const std::int8_t> weights,
                     Program& program);

  /// Makes each sum of a map and of a convolution's output that nothing else reads, where it
  /// follows the convolution, part of that, which then has the map as its second input. For
  /// executors that compute it so (pipeline/gpu_network.h).
  void join_sums();

  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const std::vector<Operation>& operations() const { return operations_; }
  /// Planes of floats that go in.
  [[nodiscard]] int input_channels() const { return input_channels_; }
  [[nodiscard]] int outputs() const { return outputs_; }
  /// Whether it computes in bf16.
  [[nodiscard]] bool bf16() const { return bf16_; }

 private:
  /// Numbers the values anew, in the order in which they are written.
  void drop_unwritten_values();

  std::vector<Value> values_;
  std::vector<Operation> operations_;
  int input_channels_ = 0;
  int outputs_ = 0;
  bool bf16_ = false;
};

}  // namespace cutout::low_precision
