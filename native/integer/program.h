#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"

namespace cutout::integer {

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
  int channel = 0;
  int inputs = 0;  // at most kChunkInputs; the weights behind them are 0
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
  bool wide = false;  // weights of 16 bits: 256 * high byte + low byte, both signed
  int outputs = 0;    // rounded up to whole groups of kLanes
  std::vector<Chunk> chunks;
  /// [group of kLanes output channels][panel][chunk][16][kLanes][4], int8. Borrowed.
  /// A panel is what 8-bit weights of one group are packed into; 16-bit weights have two, of their
  /// high bytes and of their low ones.
  std::span<const std::int8_t> weights;
  /// Of the sums, for the zero point of the input too. Borrowed.
  std::span<const std::int32_t> bias;
  /// From sums to values of the output. Borrowed.
  std::span<const float> scales;
  int zero = 0;       // of the output
  int channel = 0;    // of the input: the first it reads
  int channels = 0;   // of the input it reads
  bool relu = false;  // of an output of floats; quantised values are cut off at 0 anyway

  [[nodiscard]] int groups() const { return outputs / kLanes; }
  [[nodiscard]] int panels() const { return wide ? 2 : 1; }
  [[nodiscard]] bool reads_rows() const { return dilation == 1 && kernel_width > 1; }
};

struct MaxPool {
  int kernel = 0;
  int stride = 0;
  bool round_up = false;
};

struct Resize {
  int factor = 1;  // a power of two
};

struct Add {
  float first = 0;   // scale of the first / scale of the sum
  float second = 0;  // likewise
  float offset = 0;  // zero points of all three
};

/// A sum of maps of floats, as floats or quantised.
struct Combine {
  bool relu = false;
};

enum class Kind {
  kInput,
  kConv,
  kMaxPool,
  kResize,
  kAdd,
  kConcat,
  kSplit,
  kCombine,
  kOutput,
  kSumOutput,
};
inline constexpr int kKinds = 10;

/// Values are numbered; each is written by one operation.
struct Operation {
  Kind kind = Kind::kConv;
  std::vector<int> inputs;  // values
  int output = -1;          // value; of kOutput and kSumOutput the output's number
  Conv conv;
  MaxPool pool;
  Resize resize;
  Add add;
  Combine combine;
  std::span<const float> scales;  // kInput, kCombine, kSumOutput: one; kOutput: one a channel
  float low = 0;                  // kSumOutput: what 0 stands for
};

/// What a value's numbers are.
enum class Type { kQuantised, kFloats };

struct Value {
  Type type = Type::kQuantised;
  int channels = 0;
  int zero = 0;        // of quantised values: what stands for 0, and what borders are filled with
  bool split = false;  // whether a kSplit writes it

  [[nodiscard]] int bytes() const {
    return type == Type::kFloats ? channels * static_cast<int>(sizeof(float)) : channels;
  }
};

/// The 8-bit part of a network: maps [height, width, channels] of quantised values (u8), a few of
/// floats, and the operations on them, in the order they are run. Quantised values are cut off at 0
/// and 255; numbers are rounded to the nearest, to even.
///
/// | operation  | arithmetic                                                                     |
/// |------------|--------------------------------------------------------------------------------|
/// | kInput     | u8: round(x / scale) + zero                                                    |
/// | kConv      | v = (sum(u8 * weight) + bias) * scale, with weights of 8 or 16 bits;           |
/// |            | u8: round(v) + zero; floats: v * gain of the input                             |
/// | kMaxPool   | largest of the window inside the map                                           |
/// | kResize    | bilinear at pixel centres; u8: weights in 1024ths, rounded down                |
/// | kAdd       | u8: round(a * first + (b * second + offset))                                   |
/// | kConcat    | channels side by side; costs nothing where the parts are written in place      |
/// | kSplit     | floats of 0 and above as 16 bits: channels of the upper 8, then of the lower 8; |
/// |            | its gain is the largest / 65535                                                |
/// | kCombine   | sum of maps of floats, negative ones 0 with relu; u8: round(v / scale) + zero   |
/// | kOutput    | (q - zero) * scale of the channel, or the floats, as planes                    |
/// | kSumOutput | sum of the channels * scale + low                                              |
///
/// A convolution of a kSplit reads one half of its channels and takes its gain: 256 of 1 / 65535ths
/// of the largest for the upper half, 1 for the lower.
class Program {
 public:
  /// Reads what src/models/integer/program.ts writes. `code` are the operations, `floats` and
  /// `ints` the constants that they name by their place, `weights` the packed weights; all are
  /// borrowed for as long as the program lives. kModel for anything that does not fit together.
  static Status read(std::span<const std::int64_t> code, std::span<const float> floats,
                     std::span<const std::int32_t> ints, std::span<const std::int8_t> weights,
                     Program& program);

  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const std::vector<Operation>& operations() const { return operations_; }
  /// Planes of floats that go in.
  [[nodiscard]] int input_channels() const { return input_channels_; }
  [[nodiscard]] int outputs() const { return outputs_; }

 private:
  std::vector<Value> values_;
  std::vector<Operation> operations_;
  int input_channels_ = 0;
  int outputs_ = 0;
};

}  // namespace cutout::integer
