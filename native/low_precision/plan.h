#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "low_precision/program.h"

namespace cutout::low_precision {

/// Where a value lies in the memory of a run: rows of pixels, `stride` bytes from pixel to pixel,
/// of which `channels` from `data` on are the value's own.
struct Map {
  std::uint8_t* data = nullptr;  // of pixel (0, 0)
  int width = 0;
  int height = 0;
  int channels = 0;
  Type type = Type::kQuantised;
  int zero = 0;               // Value::zero
  std::ptrdiff_t stride = 0;  // bytes between pixels
  std::ptrdiff_t pitch = 0;   // bytes between rows

  /// The bytes of the value's own channels of a pixel.
  [[nodiscard]] int bytes() const { return channels * bytes_of(type); }
  [[nodiscard]] std::uint8_t* at(int x, int y) const { return data + y * pitch + x * stride; }
  /// The same pixel of a map whose numbers are `Number`s.
  template <typename Number>
  [[nodiscard]] Number* at(int x, int y) const {
    return reinterpret_cast<Number*>(at(x, y));
  }
};

/// Sizes and places of every value for one size of the input. Values that are used at different
/// times share memory; the parts of a concatenation lie in it, so that nothing is copied.
class Plan {
 public:
  /// Makes the plan for an input of this size. kModel where an operation does not fit it.
  static Status make(const Program& program, int width, int height, Plan& plan);

  /// Bytes that a run needs, aligned to kAlignment.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  static constexpr std::size_t kAlignment = 64;

  /// The value in the memory of a run.
  [[nodiscard]] Map map(int value, std::uint8_t* memory) const;
  /// Blocks whose borders, and the bytes behind them, are to be filled before the operation, as
  /// values that span them.
  [[nodiscard]] const std::vector<int>& borders_before(std::size_t operation) const {
    return borders_[operation];
  }
  /// Pixels of border around the block that the value spans.
  [[nodiscard]] int border(int value) const {
    return places_[static_cast<std::size_t>(value)].border;
  }

 private:
  struct Place {
    int width = 0;
    int height = 0;
    int parent = -1;  // the concatenation it lies in
    int before = 0;   // bytes of the parent's pixel before it
    int border = 0;   // of the block, in pixels
    std::size_t offset = 0;
  };

  /// Where a part of a concatenation lies that is written long before the others.
  enum class EarlyPart { kInPlace, kApart };
  class Layout;

  /// The value that a value lies in and that lies in no other.
  [[nodiscard]] int root(int value) const;

  std::vector<Place> places_;
  std::vector<Value> values_;
  std::vector<std::vector<int>> borders_;
  std::size_t bytes_ = 0;
};

/// Rounds up to whole cache lines.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + Plan::kAlignment - 1) / Plan::kAlignment * Plan::kAlignment;
}

}  // namespace cutout::low_precision
