#include "low_precision/plan.h"

#include <algorithm>
#include <limits>
#include <string>

namespace cutout::low_precision {

namespace {

/// A kernel reads whole chunks of whole groups of pixels: up to so many pixels and bytes past the
/// last one, which belong to the block.
constexpr int kPixelsBehind = 96;

/// Of one block and of all together.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 36;

/// Longest side of a map: positions in 1024ths (maps.cc) and sizes with borders fit an int.
constexpr int kMaxLength = 1 << 16;

bool is_side(int length) { return length >= 1 && length <= kMaxLength; }

std::size_t aligned(std::size_t bytes) {
  return (bytes + Plan::kAlignment - 1) / Plan::kAlignment * Plan::kAlignment;
}

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

}  // namespace

int Plan::root(int value) const {
  while (places_[static_cast<std::size_t>(value)].parent >= 0) {
    value = places_[static_cast<std::size_t>(value)].parent;
  }
  return value;
}

Status Plan::make(const Program& program, int width, int height, Plan& plan) {
  Plan apart;
  CUTOUT_RETURN_IF_ERROR(lay_out(program, width, height, Waiting::kInPlace, plan));
  CUTOUT_RETURN_IF_ERROR(lay_out(program, width, height, Waiting::kApart, apart));
  // A copy has to save a tenth of the memory.
  if (apart.bytes_ < plan.bytes_ / 10 * 9) plan = std::move(apart);
  return {};
}

Status Plan::lay_out(const Program& program, int width, int height, Waiting waiting, Plan& plan) {
  const Status misfit(Code::kModel,
                      "The low-precision part of the network does not fit an input of " +
                          std::to_string(width) + " x " + std::to_string(height) + " pixels.");
  if (!is_side(width) || !is_side(height)) return misfit;
  Plan made;
  const std::size_t count = program.values().size();
  made.places_.resize(count);
  for (const Value& value : program.values()) {
    made.channels_.push_back(value.channels);
    made.bytes_a_pixel_.push_back(value.bytes());
  }
  made.borders_.resize(program.operations().size());
  const auto place = [&](int value) -> Place& {
    return made.places_[static_cast<std::size_t>(value)];
  };

  // Sizes; and what forbids a value to lie inside another.
  std::vector<bool> apart(count, false);
  std::vector<int> border(count, 0);
  for (const Operation& operation : program.operations()) {
    const Place* const first =
        operation.inputs.empty() ? nullptr : &place(operation.inputs.front());
    int w = first != nullptr ? first->width : width;
    int h = first != nullptr ? first->height : height;
    switch (operation.kind) {
      case Kind::kConv: {
        const Conv& conv = operation.conv;
        const int input = operation.inputs.front();
        // A kernel may read what lies behind a chunk's inputs: neighbouring pixels of the map, but
        // not, as bf16, parts of a concatenation that are not written yet.
        if ((conv.reads_rows() || conv.bf16) && conv.pixel_bytes() % kChunkInputs != 0) {
          apart[static_cast<std::size_t>(input)] = true;
        }
        border[static_cast<std::size_t>(input)] =
            std::max({border[static_cast<std::size_t>(input)], conv.top, conv.left, conv.bottom,
                      conv.right});
        h = (h + conv.top + conv.bottom - conv.dilation * (conv.kernel_height - 1) - 1);
        w = (w + conv.left + conv.right - conv.dilation * (conv.kernel_width - 1) - 1);
        if (h < 0 || w < 0) return misfit;
        h = h / conv.stride + 1;
        w = w / conv.stride + 1;
        for (std::size_t i = 1; i < operation.inputs.size(); ++i) {  // Program::join_sums
          if (place(operation.inputs[i]).width != w || place(operation.inputs[i]).height != h)
            return misfit;
        }
        break;
      }
      case Kind::kMaxPool: {
        const MaxPool& pool = operation.pool;
        if (h < pool.kernel || w < pool.kernel) {
          if (!pool.round_up) return misfit;
        }
        const int more = pool.round_up ? pool.stride - 1 : 0;
        const auto side = [&](int length) {
          int out = std::max(0, length - pool.kernel + more) / pool.stride + 1;
          if ((out - 1) * pool.stride >= length) --out;  // a window must begin inside
          return out;
        };
        h = side(h);
        w = side(w);
        break;
      }
      case Kind::kResize:
        h *= operation.resize.factor;
        w *= operation.resize.factor;
        break;
      case Kind::kAdd:
      case Kind::kCombine:
      case Kind::kConcat:
        for (const int input : operation.inputs) {
          if (place(input).width != w || place(input).height != h) return misfit;
        }
        break;
      default:
        break;
    }
    if (operation.outward()) continue;
    if (!is_side(w) || !is_side(h)) return misfit;
    place(operation.output).width = w;
    place(operation.output).height = h;
  }

  // The parts of a concatenation lie in it, each in the first one that takes it. With kApart those
  // that wait for it through most of the program do not, and are copied: until then the room of the
  // other parts would be held for nothing.
  std::vector<std::size_t> written(count, 0);
  const std::size_t long_wait = std::max(kLongWait, program.operations().size() / 3 * 2);
  for (std::size_t at = 0; at < program.operations().size(); ++at) {
    const Operation& operation = program.operations()[at];
    if (operation.outward()) continue;
    written[static_cast<std::size_t>(operation.output)] = at;
    if (operation.kind != Kind::kConcat) continue;
    int before = 0;
    for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
      const int input = operation.inputs[i];
      const bool again =
          std::find(operation.inputs.begin(),
                    operation.inputs.begin() + static_cast<std::ptrdiff_t>(i),
                    input) != operation.inputs.begin() + static_cast<std::ptrdiff_t>(i);
      const bool waits =
          waiting == Waiting::kApart && at - written[static_cast<std::size_t>(input)] > long_wait;
      if (place(input).parent < 0 && !apart[static_cast<std::size_t>(input)] && !again && !waits) {
        place(input).parent = operation.output;
        place(input).before = before;
      }
      before += made.bytes_a_pixel_[static_cast<std::size_t>(input)];
    }
  }

  // Blocks: a value that lies in no other, with all that lie in it.
  std::vector<Block> blocks(count);
  std::vector<int> block_border(count, 0);
  const auto use = [&](int value, std::size_t operation) {
    Block& block = blocks[static_cast<std::size_t>(made.root(value))];
    block.first = std::min(block.first, operation);
    block.last = std::max(block.last, operation);
  };
  for (std::size_t i = 0; i < program.operations().size(); ++i) {
    const Operation& operation = program.operations()[i];
    for (const int input : operation.inputs) use(input, i);
    if (!operation.outward()) use(operation.output, i);
  }
  for (std::size_t value = 0; value < count; ++value) {
    const auto top = static_cast<std::size_t>(made.root(static_cast<int>(value)));
    block_border[top] = std::max(block_border[top], border[value]);
  }
  std::vector<Block> order;
  for (std::size_t value = 0; value < count; ++value) {
    Place& where = made.places_[value];
    where.border = block_border[static_cast<std::size_t>(made.root(static_cast<int>(value)))];
    if (where.parent >= 0) continue;
    const std::int64_t sides = 2 * std::int64_t{where.border};
    const std::int64_t pixels = (where.width + sides) * (where.height + sides) + kPixelsBehind;
    const std::int64_t bytes = pixels * made.bytes_a_pixel_[value] + kChunkInputs;
    if (bytes > kMaxBytes) return misfit;
    Block& block = blocks[value];
    block.value = static_cast<int>(value);
    block.bytes = aligned(static_cast<std::size_t>(bytes));
    order.push_back(block);
    if (where.border > 0 || program.bf16()) {
      made.borders_[block.first].push_back(static_cast<int>(value));
    }
  }
  // The largest first: they decide how much is needed.
  std::ranges::stable_sort(order, std::greater{}, &Block::bytes);
  const std::vector<Block> placed = placed_blocks(std::move(order));
  for (const Block& block : placed) {
    made.places_[static_cast<std::size_t>(block.value)].offset = block.offset;
  }
  made.bytes_ = end_of(placed);
  if (made.bytes_ > static_cast<std::size_t>(kMaxBytes)) return misfit;
  plan = std::move(made);
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
  map.channels = channels_[index];
  map.bytes = bytes_a_pixel_[index];
  map.stride = bytes_a_pixel_[top];
  map.pitch = map.stride * (block.width + 2 * block.border);
  map.data = memory + block.offset + block.border * (map.pitch + map.stride) + before;
  return map;
}

}  // namespace cutout::low_precision
