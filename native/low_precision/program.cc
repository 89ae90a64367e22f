#include "low_precision/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "core/simd.h"

namespace cutout::low_precision {

namespace {

/// No network comes near; keeps sums of products of sizes inside their types, and a plan, whose
/// time grows with the square of the values, below a second.
constexpr std::int64_t kMaxValues = 1 << 12;
constexpr std::int64_t kMaxChannels = 1 << 14;
constexpr std::int64_t kMaxSide = 64;
/// A kernel reads so many pixels past the end for each pixel it makes (plan.cc).
constexpr std::int64_t kMaxStride = 4;

struct Malformed {
  const char* what;
};

/// Takes one number after the other and checks what it may be.
class Reader {
 public:
  Reader(std::span<const std::int64_t> code, std::span<const float> floats,
         std::span<const std::int32_t> ints, std::span<const std::int8_t> weights)
      : code_(code),
        floats_(floats),
        ints_(ints),
        weights_(weights),
        unused_weights_(weights.size()) {}

  [[nodiscard]] bool done() const { return at_ == code_.size(); }

  int number(std::int64_t least, std::int64_t most, const char* what) {
    if (at_ == code_.size()) throw Malformed{"it ends too early"};
    const std::int64_t value = code_[at_++];
    if (value < least || value > most) throw Malformed{what};
    return static_cast<int>(value);
  }

  template <typename T>
  std::span<const T> part(std::span<const T> all, std::size_t count, const char* what) {
    const auto from = static_cast<std::size_t>(number(0, INT32_MAX, what));
    if (from > all.size() || count > all.size() - from) throw Malformed{what};
    return all.subspan(from, count);
  }

  std::span<const float> floats(std::size_t count) { return part(floats_, count, "a constant"); }
  std::span<const std::int32_t> ints(std::size_t count) { return part(ints_, count, "a bias"); }
  /// Convolutions share no weights: what is kept for each, its chunks, is bounded by the file's
  /// size.
  std::span<const std::int8_t> weights(std::size_t count) {
    if (count > unused_weights_) throw Malformed{"the weights"};
    unused_weights_ -= count;
    return part(weights_, count, "the weights");
  }

 private:
  std::span<const std::int64_t> code_;
  std::span<const float> floats_;
  std::span<const std::int32_t> ints_;
  std::span<const std::int8_t> weights_;
  std::size_t unused_weights_;
  std::size_t at_ = 0;
};

/// Inputs that lie side by side are multiplied together: whole rows of the kernel where the taps
/// touch, else tap by tap. src/compiler/lowPrecision/pack.ts packs the weights in the same order.
std::vector<Chunk> chunks_of(const Conv& conv) {
  std::vector<Chunk> chunks;
  // With whole chunks a tap both orders are the same, and taps may lie apart.
  const bool rows = conv.reads_rows() && conv.pixel_bytes() % kChunkInputs != 0;
  const int side_by_side = (rows ? conv.kernel_width : 1) * conv.pixel_bytes();
  for (int row = 0; row < conv.kernel_height; ++row) {
    for (int column = 0; column < (rows ? 1 : conv.kernel_width); ++column) {
      for (int from = 0; from < side_by_side; from += kChunkInputs) {
        chunks.push_back({row, column, from, std::min(kChunkInputs, side_by_side - from)});
      }
    }
  }
  return chunks;
}

/// Adds the positive and the negative weights of a chunk, apart for each channel and input.
CUTOUT_SIMD void add_weights(const std::int8_t* chunk, std::int32_t* positive,
                             std::int32_t* negative) {
  for (int row = 0; row < kChunkBytes; row += 4 * kLanes) {
    for (int i = 0; i < 4 * kLanes; ++i) {
      const int weight = chunk[row + i];
      positive[i] += std::max(weight, 0);
      negative[i] -= std::min(weight, 0);
    }
  }
}

std::int64_t largest_sum(const Conv& conv) {
  constexpr int kLargestInput = 255;
  const std::size_t panel_bytes = conv.chunks.size() * kChunkBytes;
  std::int64_t largest = 0;
  for (std::size_t panel = 0; panel < conv.weights.size(); panel += panel_bytes) {
    std::array<std::int32_t, std::size_t{4} * kLanes> positive{};
    std::array<std::int32_t, std::size_t{4} * kLanes> negative{};
    for (std::size_t at = 0; at < panel_bytes; at += kChunkBytes) {
      add_weights(conv.weights.data() + panel + at, positive.data(), negative.data());
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (const auto& sums : {positive, negative}) {
        std::int64_t sum = 0;
        for (std::size_t input = 0; input < 4; ++input) sum += sums[4 * lane + input];
        largest = std::max(largest, sum * kLargestInput);
      }
    }
  }
  return largest;
}

Conv read_conv(Reader& reader, const Value& input, const Value& output) {
  Conv conv;
  conv.channel = reader.number(0, input.channels - 1, "a convolution's first channel");
  conv.channels = reader.number(1, input.channels - conv.channel, "a convolution's channels");
  conv.kernel_height = reader.number(1, kMaxSide, "a kernel's height");
  conv.kernel_width = reader.number(1, kMaxSide, "a kernel's width");
  conv.stride = reader.number(1, kMaxStride, "a stride");
  conv.dilation = reader.number(1, kMaxSide, "a dilation");
  conv.top = reader.number(0, kMaxSide, "a border");
  conv.left = reader.number(0, kMaxSide, "a border");
  conv.bottom = reader.number(0, kMaxSide, "a border");
  conv.right = reader.number(0, kMaxSide, "a border");
  conv.int16_weights = reader.number(1, 2, "the panels of a convolution") == 2;
  conv.relu = reader.number(0, 1, "a convolution's relu") == 1;
  conv.outputs = output.channels;
  conv.zero = output.zero;
  conv.bf16 = input.type == Type::kBf16;
  if (conv.outputs % kLanes != 0) throw Malformed{"the channels of a convolution"};
  if (conv.pixel_bytes() % 4 != 0 || input.type == Type::kFloats ||
      (conv.bf16 && conv.int16_weights)) {
    throw Malformed{"the input of a convolution"};
  }
  // Whole rows of the kernel are read at once where all channels are.
  if (conv.reads_rows() && conv.channels != input.channels &&
      conv.pixel_bytes() % kChunkInputs != 0) {
    throw Malformed{"the channels of a convolution's input"};
  }
  conv.chunks = chunks_of(conv);
  const auto outputs = static_cast<std::size_t>(conv.outputs);
  const auto panels = static_cast<std::size_t>(conv.panels());
  conv.weights = reader.weights(outputs / kLanes * panels * conv.chunks.size() * kChunkBytes);
  if (conv.bf16) {
    conv.float_bias = reader.floats(outputs);
    return conv;
  }
  conv.bias = reader.ints(outputs);
  conv.scales = reader.floats(outputs);
  conv.largest_sum = largest_sum(conv);
  return conv;
}

int read_factor(Reader& reader) {
  const int factor = reader.number(1, 512, "a factor of size");
  if (!std::has_single_bit(static_cast<unsigned>(factor))) throw Malformed{"a factor of size"};
  return factor;
}

/// Whether the output of a concatenation has the channels and the zero point of its inputs.
bool joins(const std::vector<Value>& inputs, const Value& output) {
  int channels = 0;
  for (const Value& value : inputs) {
    if (value.zero != output.zero) return false;
    channels += value.channels;
  }
  return !inputs.empty() && channels == output.channels;
}

MaxPool read_max_pool(Reader& reader) {
  MaxPool pool;
  pool.kernel = reader.number(1, kMaxSide, "a window");
  pool.stride = reader.number(1, pool.kernel, "a window's stride");
  pool.round_up = reader.number(0, 1, "a window's rounding") == 1;
  return pool;
}

/// What follows the values of an operation, which have to be those that its kind takes and gives.
void read_parameters(Reader& reader, const Program& made, const std::vector<Value>& inputs,
                     const Value& output, Operation& operation) {
  const auto require = [](bool fit) {
    if (!fit) throw Malformed{"the values of an operation"};
  };
  const auto all = [&](Type type) {
    return std::ranges::all_of(inputs, [type](const Value& value) { return value.type == type; });
  };
  const auto same_channels = [&] {
    return std::ranges::all_of(
        inputs, [&](const Value& value) { return value.channels == output.channels; });
  };
  const bool one = inputs.size() == 1;
  switch (operation.kind) {
    case Kind::kInput:
      require(inputs.empty() && output.type != Type::kFloats);
      if (!made.bf16()) operation.scales = reader.floats(1);
      if (output.channels < made.input_channels()) throw Malformed{"the channels of the input"};
      return;
    case Kind::kConv:
      require(one);
      operation.conv = read_conv(reader, inputs.front(), output);
      return;
    case Kind::kMaxPool:
      require(one && all(output.type) && output.type != Type::kFloats && same_channels());
      operation.pool = read_max_pool(reader);
      return;
    case Kind::kResize:
      require(one && all(output.type) && same_channels());
      operation.factor = read_factor(reader);
      return;
    case Kind::kAdd: {
      require(inputs.size() == 2 && all(Type::kQuantised) && output.type == Type::kQuantised &&
              same_channels());
      const std::span<const float> parts = reader.floats(3);
      operation.add = {parts[0], parts[1], parts[2]};
      return;
    }
    case Kind::kConcat:
      return require(all(output.type) && output.type != Type::kFloats && joins(inputs, output));
    case Kind::kSplitBytes:
      return require(one && all(Type::kFloats) && output.type == Type::kQuantised &&
                     output.channels == 2 * inputs.front().channels && output.zero == 0);
    case Kind::kCombine:
      require(!inputs.empty() && same_channels() &&
              (all(Type::kBf16) ? output.type == Type::kBf16
                                : all(Type::kFloats) && output.type != Type::kBf16));
      operation.relu = reader.number(0, 1, "a relu") == 1;
      operation.scales = reader.floats(1);
      return;
    case Kind::kOutput:
      require(one && !all(Type::kBf16));
      operation.scales = reader.floats(static_cast<std::size_t>(inputs.front().channels));
      return;
    case Kind::kSumOutput: {
      require(one && all(Type::kQuantised));
      const std::span<const float> parts = reader.floats(2);
      operation.scales = parts.first(1);
      operation.low = parts[1];
      return;
    }
    case Kind::kPlanes:
      require(one && !all(Type::kQuantised));
      operation.channels = reader.number(1, inputs.front().channels, "the channels of an output");
      return;
  }
}

/// `made` has its values; of those, `written` says which an earlier operation gives.
Operation read_operation(Reader& reader, const Program& made, const std::vector<bool>& written) {
  const std::vector<Value>& values = made.values();
  const auto count = static_cast<int>(values.size());
  Operation operation;
  operation.kind = static_cast<Kind>(reader.number(0, kKinds - 1, "a kind of operation"));
  const int inputs = reader.number(0, 64, "a number of inputs");
  std::vector<Value> given;
  for (int i = 0; i < inputs; ++i) {
    const int index = reader.number(0, count - 1, "an input");
    if (!written[static_cast<std::size_t>(index)]) throw Malformed{"an input's order"};
    operation.inputs.push_back(index);
    given.push_back(values[static_cast<std::size_t>(index)]);
  }
  operation.output =
      reader.number(0, (operation.outward() ? made.outputs() : count) - 1, "an output");
  const Value output =
      operation.outward() ? Value{} : values[static_cast<std::size_t>(operation.output)];
  read_parameters(reader, made, given, output, operation);
  return operation;
}

}  // namespace

Status Program::read(std::span<const std::int64_t> code, std::span<const float> floats,
                     std::span<const std::int32_t> ints, std::span<const std::int8_t> weights,
                     Program& program) {
  try {
    Reader reader(code, floats, ints, weights);
    Program made;
    made.input_channels_ = reader.number(1, kMaxChannels, "the channels of the input");
    made.outputs_ = reader.number(1, kMaxValues, "the number of outputs");
    const int count = reader.number(1, kMaxValues, "the number of values");
    for (int i = 0; i < count; ++i) {
      Value value;
      value.type = static_cast<Type>(reader.number(0, kTypes - 1, "a value's type"));
      value.channels = reader.number(1, kMaxChannels, "a value's channels");
      value.zero = reader.number(0, value.type == Type::kBf16 ? 0 : 255, "a zero point");
      made.values_.push_back(value);
    }
    const auto has = [&made](Type type) {
      return std::ranges::find(made.values_, type, &Value::type) != made.values_.end();
    };
    made.bf16_ = has(Type::kBf16);
    if (made.bf16_ && has(Type::kQuantised)) throw Malformed{"the types of its values"};
    std::vector<bool> written(made.values_.size(), false);
    std::vector<bool> given(static_cast<std::size_t>(made.outputs_), false);
    while (!reader.done()) {
      Operation operation = read_operation(reader, made, written);
      std::vector<bool>& seen = operation.outward() ? given : written;
      if (seen[static_cast<std::size_t>(operation.output)])
        throw Malformed{"a value written twice"};
      seen[static_cast<std::size_t>(operation.output)] = true;
      if (operation.kind == Kind::kSplitBytes) {
        made.values_[static_cast<std::size_t>(operation.output)].split = true;
      }
      made.operations_.push_back(std::move(operation));
    }
    if (made.operations_.empty() || made.operations_.front().kind != Kind::kInput) {
      throw Malformed{"the first operation"};
    }
    if (std::ranges::find(written, false) != written.end() ||
        std::ranges::find(given, false) != given.end()) {
      throw Malformed{"a value that nothing writes"};
    }
    program = std::move(made);
    return {};
  } catch (const Malformed& fault) {
    return {Code::kModel,
            std::string("The low-precision part of the network is malformed: ") + fault.what + "."};
  }
}

void Program::join_sums() {
  const auto readers = [this](int value) {
    std::ptrdiff_t count = 0;
    for (const Operation& operation : operations_) {
      count += std::ranges::count(operation.inputs, value);
    }
    return count;
  };
  std::vector<Operation> joined;
  for (Operation& operation : operations_) {
    const bool sum = operation.kind == Kind::kCombine && operation.inputs.size() == 2 &&
                     !operation.relu && !joined.empty() && joined.back().kind == Kind::kConv &&
                     joined.back().inputs.size() == 1 && joined.back().conv.channels % kLanes == 0;
    const auto own =
        sum ? std::ranges::find(operation.inputs, joined.back().output) : operation.inputs.end();
    const bool joins = sum && own != operation.inputs.end() && readers(*own) == 1 &&
                       values_[static_cast<std::size_t>(*own)].type ==
                           values_[static_cast<std::size_t>(operation.output)].type;
    if (!joins) {
      joined.push_back(std::move(operation));
      continue;
    }
    operation.inputs.erase(own);
    joined.back().inputs.push_back(operation.inputs.front());
    joined.back().output = operation.output;
  }
  operations_ = std::move(joined);
  drop_unwritten_values();
}

void Program::drop_unwritten_values() {
  std::vector<int> number(values_.size(), -1);
  std::vector<Value> written;
  for (Operation& operation : operations_) {
    for (int& input : operation.inputs) input = number[static_cast<std::size_t>(input)];
    if (operation.outward()) continue;
    int& output = operation.output;
    number[static_cast<std::size_t>(output)] = static_cast<int>(written.size());
    written.push_back(values_[static_cast<std::size_t>(output)]);
    output = number[static_cast<std::size_t>(output)];
  }
  values_ = std::move(written);
}

}  // namespace cutout::low_precision
