#include "low_precision/plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace cutout::low_precision {

namespace {

/// A kernel reads whole chunks of whole groups of pixels: up to so many pixels and bytes past the
/// last one, which belong to the block.
constexpr int kPixelsBehind = 96;

/// The largest number of bytes of one block and of all together.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 36;

/// Longest side of a map: positions in 1024ths (maps.cc) and sizes with borders fit an int.
constexpr int kMaxLength = 1 << 16;

bool is_side(int length) { return length >= 1 && length <= kMaxLength; }

/// Orders in which blocks are placed. IS-Net needs no more memory than is in use at one time from
/// the third on.
constexpr int kAttempts = 6;

/// Operations that a part of a concatenation waits for it, at least, to lie apart.
constexpr std::size_t kLongWait = 16;

/// A stretch of memory that is in use from one operation to another, both included.
struct Block {
  int value = 0;
  std::size_t bytes = 0;
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;
  std::size_t offset = 0;
};

/// The lowest offset at which a block meets none that is in use at the same time.
std::size_t lowest_place(const Block& block, const std::vector<Block>& placed) {
  std::vector<const Block*> others;
  for (const Block& other : placed) {
    if (other.first <= block.last && block.first <= other.last) others.push_back(&other);
  }
  std::ranges::sort(others, {}, [](const Block* other) { return other->offset; });
  std::size_t at = 0;
  for (const Block* other : others) {
    if (at + block.bytes <= other->offset) break;
    at = std::max(at, other->offset + other->bytes);
  }
  return at;
}

/// Bytes up to the end of all blocks.
std::size_t end_of(const std::vector<Block>& placed) {
  std::size_t end = 0;
  for (const Block& block : placed) end = std::max(end, block.offset + block.bytes);
  return end;
}

/// The blocks at their offsets, one after the other in their order; then again with the block that
/// ended last as the first, where that needs less memory.
std::vector<Block> placed_blocks(std::vector<Block> order) {
  std::vector<Block> best;
  for (int attempt = 0; attempt < kAttempts && !order.empty(); ++attempt) {
    std::vector<Block> placed;
    placed.reserve(order.size());
    for (Block block : order) {
      block.offset = lowest_place(block, placed);
      placed.push_back(block);
    }
    const auto last = std::ranges::max_element(
        placed, {}, [](const Block& block) { return block.offset + block.bytes; });
    const auto index = last - placed.begin();
    if (best.empty() || end_of(placed) < end_of(best)) best = std::move(placed);
    std::rotate(order.begin(), order.begin() + index, order.begin() + index + 1);
  }
  return best;
}

/// Width and height of a map.
struct Size {
  int width = 0;
  int height = 0;

  bool operator==(const Size&) const = default;
};

/// The size of a convolution's output; none where its window is larger than the input.
std::optional<Size> convolved(const Conv& conv, Size input) {
  const int height =
      input.height + conv.top + conv.bottom - conv.dilation * (conv.kernel_height - 1) - 1;
  const int width =
      input.width + conv.left + conv.right - conv.dilation * (conv.kernel_width - 1) - 1;
  if (height < 0 || width < 0) return {};
  return Size{width / conv.stride + 1, height / conv.stride + 1};
}

/// The size of a pooled map; none where the window is larger than a map that is not rounded up.
std::optional<Size> pooled(const MaxPool& pool, Size input) {
  if ((input.height < pool.kernel || input.width < pool.kernel) && !pool.round_up) return {};
  const int more = pool.round_up ? pool.stride - 1 : 0;
  const auto side = [&](int length) {
    const int out = std::max(0, length - pool.kernel + more) / pool.stride + 1;
    return (out - 1) * pool.stride >= length ? out - 1 : out;  // a window must begin inside
  };
  return Size{side(input.width), side(input.height)};
}

}  // namespace

/// Lays out one plan: the sizes of the values, which of them lie inside others, and where the rest
/// lie in memory. The functions are called once each, in the order of their declaration; those that
/// return false found that the program does not fit the input.
class Plan::Layout {
 public:
  Layout(const Program& program, EarlyPart early_part)
      : program_(program),
        early_part_(early_part),
        count_(program.values().size()),
        apart_(count_, false),
        border_(count_, 0) {
    plan_.places_.resize(count_);
    plan_.values_ = program.values();
    plan_.borders_.resize(program.operations().size());
  }

  /// The sizes of all values, for an input of this size.
  bool size_values(Size input) {
    if (!is_side(input.width) || !is_side(input.height)) return false;
    for (const Operation& operation : program_.operations()) {
      if (operation.kind == Kind::kConv) note_reads(operation);
      const Size first = operation.inputs.empty() ? input : size_of(operation.inputs.front());
      const std::optional<Size> output = output_size(operation, first);
      if (!output) return false;
      if (operation.outward()) continue;
      if (!is_side(output->width) || !is_side(output->height)) return false;
      place(operation.output).width = output->width;
      place(operation.output).height = output->height;
    }
    return true;
  }

  /// The parts of a concatenation lie in it, each in the first one that takes it. With kApart those
  /// that wait for it through most of the program do not, and are copied: until then the room of
  /// the other parts would be held for nothing.
  void place_parts() {
    std::vector<std::size_t> written(count_, 0);
    const std::size_t long_wait = std::max(kLongWait, program_.operations().size() / 3 * 2);
    for (std::size_t at = 0; at < program_.operations().size(); ++at) {
      const Operation& operation = program_.operations()[at];
      if (operation.outward()) continue;
      written[index(operation.output)] = at;
      if (operation.kind != Kind::kConcat) continue;
      int before = 0;
      for (auto part = operation.inputs.begin(); part != operation.inputs.end(); ++part) {
        const bool again = std::find(operation.inputs.begin(), part, *part) != part;
        const bool waits =
            early_part_ == EarlyPart::kApart && at - written[index(*part)] > long_wait;
        if (place(*part).parent < 0 && !apart_[index(*part)] && !again && !waits) {
          place(*part).parent = operation.output;
          place(*part).before = before;
        }
        before += plan_.values_[index(*part)].bytes();
      }
    }
  }

  /// The blocks, which are the values that lie in no other, each with all that lie in it, and their
  /// offsets.
  bool place_blocks() {
    widen_borders();
    std::vector<Block> order;
    if (!list_blocks(order)) return false;
    // The largest first: they decide how much is needed.
    std::ranges::stable_sort(order, std::greater{}, &Block::bytes);
    const std::vector<Block> placed = placed_blocks(std::move(order));
    for (const Block& block : placed) place(block.value).offset = block.offset;
    plan_.bytes_ = end_of(placed);
    return plan_.bytes_ <= static_cast<std::size_t>(kMaxBytes);
  }

  /// The finished plan, once.
  Plan take() { return std::move(plan_); }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  Place& place(int value) { return plan_.places_[index(value)]; }
  [[nodiscard]] Size size_of(int value) const {
    const Place& place = plan_.places_[index(value)];
    return {place.width, place.height};
  }
  [[nodiscard]] bool all_are(std::span<const int> values, Size size) const {
    return std::ranges::all_of(values, [&](int value) { return size_of(value) == size; });
  }

  /// What a convolution reads beyond its input's pixels: the border that the input needs, and
  /// whether that may lie inside another value. A kernel may read what lies behind a chunk's
  /// inputs: neighbouring pixels of the map, but not, as bf16, parts of a concatenation that are
  /// not written yet.
  void note_reads(const Operation& operation) {
    const Conv& conv = operation.conv;
    const std::size_t input = index(operation.inputs.front());
    if ((conv.reads_rows() || conv.bf16) && conv.pixel_bytes() % kChunkInputs != 0) {
      apart_[input] = true;
    }
    border_[input] = std::max({border_[input], conv.top, conv.left, conv.bottom, conv.right});
  }

  /// The size of an operation's output for a first input of this size; none where its inputs do
  /// not fit.
  [[nodiscard]] std::optional<Size> output_size(const Operation& operation, Size first) const {
    const std::span<const int> inputs = operation.inputs;
    switch (operation.kind) {
      case Kind::kConv: {
        const std::optional<Size> output = convolved(operation.conv, first);
        // A second input is added to the output (Program::join_sums).
        return output && all_are(inputs.subspan(1), *output) ? output : std::nullopt;
      }
      case Kind::kMaxPool:
        return pooled(operation.pool, first);
      case Kind::kResize:
        return Size{first.width * operation.factor, first.height * operation.factor};
      case Kind::kAdd:
      case Kind::kCombine:
      case Kind::kConcat:
        return all_are(inputs, first) ? std::optional(first) : std::nullopt;
      default:
        return first;
    }
  }

  /// A block has the widest border of the values in it.
  void widen_borders() {
    std::vector<int> widest(count_, 0);
    const auto root = [&](std::size_t value) { return index(plan_.root(static_cast<int>(value))); };
    for (std::size_t value = 0; value < count_; ++value)
      widest[root(value)] = std::max(widest[root(value)], border_[value]);
    for (std::size_t value = 0; value < count_; ++value)
      plan_.places_[value].border = widest[root(value)];
  }

  /// Returns, for each value that is a block, the operations that use it or a value in it.
  [[nodiscard]] std::vector<Block> uses() const {
    std::vector<Block> blocks(count_);
    const auto use = [&](int value, std::size_t operation) {
      Block& block = blocks[index(plan_.root(value))];
      block.first = std::min(block.first, operation);
      block.last = std::max(block.last, operation);
    };
    for (std::size_t i = 0; i < program_.operations().size(); ++i) {
      const Operation& operation = program_.operations()[i];
      for (const int input : operation.inputs) use(input, i);
      if (!operation.outward()) use(operation.output, i);
    }
    return blocks;
  }

  /// The blocks with their sizes, in the order of their values, and which of their borders are
  /// filled when. False where one is too large.
  bool list_blocks(std::vector<Block>& order) {
    std::vector<Block> blocks = uses();
    for (std::size_t value = 0; value < count_; ++value) {
      const Place& where = plan_.places_[value];
      if (where.parent >= 0) continue;
      const std::int64_t sides = 2 * std::int64_t{where.border};
      const std::int64_t pixels = (where.width + sides) * (where.height + sides) + kPixelsBehind;
      const std::int64_t bytes = pixels * plan_.values_[value].bytes() + kChunkInputs;
      if (bytes > kMaxBytes) return false;
      Block& block = blocks[value];
      block.value = static_cast<int>(value);
      block.bytes = aligned(static_cast<std::size_t>(bytes));
      order.push_back(block);
      if (where.border > 0 || program_.bf16())
        plan_.borders_[block.first].push_back(static_cast<int>(value));
    }
    return true;
  }

  const Program& program_;
  const EarlyPart early_part_;
  const std::size_t count_;  // of values
  std::vector<bool> apart_;  // of each value: it may not lie inside another
  std::vector<int> border_;  // of each value, pixels that the convolutions of it need
  Plan plan_;
};

int Plan::root(int value) const {
  while (places_[static_cast<std::size_t>(value)].parent >= 0) {
    value = places_[static_cast<std::size_t>(value)].parent;
  }
  return value;
}

Status Plan::make(const Program& program, int width, int height, Plan& plan) {
  for (const EarlyPart early_part : {EarlyPart::kInPlace, EarlyPart::kApart}) {
    Layout layout(program, early_part);
    const bool sized = layout.size_values({width, height});
    if (sized) layout.place_parts();
    if (!sized || !layout.place_blocks()) {
      return {Code::kModel, "The low-precision part of the network does not fit an input of " +
                                std::to_string(width) + " x " + std::to_string(height) +
                                " pixels."};
    }
    Plan made = layout.take();
    // A copy has to save a tenth of the memory.
    if (early_part == EarlyPart::kInPlace || made.bytes_ < plan.bytes_ / 10 * 9) {
      plan = std::move(made);
    }
  }
  return {};
}

Map Plan::map(int value, std::uint8_t* memory) const {
  const auto index = static_cast<std::size_t>(value);
  int before = 0;
  for (int at = value; places_[static_cast<std::size_t>(at)].parent >= 0;
       at = places_[static_cast<std::size_t>(at)].parent) {
    before += places_[static_cast<std::size_t>(at)].before;
  }
  const auto top = static_cast<std::size_t>(root(value));
  const Place& block = places_[top];
  Map map;
  map.width = places_[index].width;
  map.height = places_[index].height;
  map.channels = values_[index].channels;
  map.type = values_[index].type;
  map.zero = values_[index].zero;
  map.stride = values_[top].bytes();
  map.pitch = map.stride * (block.width + 2 * block.border);
  map.data = memory + block.offset + block.border * (map.pitch + map.stride) + before;
  return map;
}

}  // namespace cutout::low_precision
