#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "stress/cuda/cases.h"

namespace cutout::test {

/// A network's output: even, noise, chequered, a spiral, or discs.
struct Output {
  int width;
  int height;
  std::vector<float> p;

  Output(Cases& cases, int w, int h)
      : width(w), height(h), p(static_cast<std::size_t>(w) * static_cast<std::size_t>(h)) {
    switch (cases.pick(0, 8)) {
      case 0:
        fill(0);
        break;
      case 1:
        fill(1);
        break;
      case 2:
        each([&](int, int) { return cases.share(); });
        break;
      case 3:
        each([&](int, int) { return level(cases); });
        break;
      case 4:
        chequered(level(cases), level(cases), cases.pick(1, 3));
        break;
      case 5:
        spiral(level(cases), level(cases));
        break;
      default:
        blobs(cases);
    }
  }

 private:
  /// Beside what the steps compare with.
  static float level(Cases& cases) {
    constexpr float kLevels[] = {0,    0.019F, 0.02F, 0.05F, 0.1F,  0.3F,  0.499F,
                                 0.5F, 0.7F,   0.9F,  0.97F, 0.98F, 0.99F, 1};
    return kLevels[cases.pick(0, static_cast<int>(std::size(kLevels)) - 1)];
  }
  float& at(int x, int y) {
    return p[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
             static_cast<std::size_t>(x)];
  }
  template <typename Value>
  void each(const Value& value) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) at(x, y) = value(x, y);
    }
  }
  void fill(float value) { std::ranges::fill(p, value); }
  void chequered(float one, float other, int side) {
    each([&](int x, int y) { return (x / side + y / side) % 2 == 0 ? one : other; });
  }
  /// A line of width 1 to the middle, its turns two apart.
  void spiral(float line, float around) {
    fill(around);
    int left = 0;
    int top = 0;
    int right = width - 1;
    int bottom = height - 1;
    for (int x = 0; x <= right; ++x) at(x, top) = line;
    while (left <= right && top <= bottom) {
      for (int y = top; y <= bottom; ++y) at(right, y) = line;
      for (int x = left; x <= right; ++x) at(x, bottom) = line;
      top += 2;
      for (int y = top; y <= bottom; ++y) at(left, y) = line;
      right -= 2;
      for (int x = left; x <= right && top < bottom; ++x) at(x, top) = line;
      bottom -= 2;
      left += 2;
    }
  }
  /// Discs of all kinds on background or on haze, in each other too.
  void blobs(Cases& cases) {
    fill(cases.pick(0, 2) == 0 ? level(cases) : 0);
    for (int i = cases.pick(1, 12); i > 0; --i) {
      const int radius = cases.pick(0, i % 3 == 0 ? std::max(width, height) / 3 : 4);
      const int column = cases.pick(0, width - 1);
      const int row = cases.pick(0, height - 1);
      const float value = cases.pick(0, 1) == 0 ? 1.0F : level(cases);
      for (int y = std::max(0, row - radius); y <= std::min(height - 1, row + radius); ++y) {
        for (int x = std::max(0, column - radius); x <= std::min(width - 1, column + radius); ++x) {
          const int dx = x - column;
          const int dy = y - row;
          if (dx * dx + dy * dy <= radius * radius) at(x, y) = value;
        }
      }
    }
  }
};

}  // namespace cutout::test
