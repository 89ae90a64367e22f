#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cutout {

inline constexpr int kTile = 32;  // cells

/// One tile of a grid of cells; the last of a row or column may be smaller.
struct Tile {
  int left = 0;
  int top = 0;
  int right = 0;  // behind the last column
  int bottom = 0;
};

/// The tiles, from left to right and top to bottom, that hold a marked cell or are within `reach`
/// (at most kTile) of one.
inline std::vector<Tile> tiles_near(const std::vector<std::uint8_t>& marked, int width, int height,
                                    int reach) {
  std::vector<Tile> tiles;
  const auto any = [&](int left, int top, int right, int bottom) {
    for (int y = std::max(top, 0); y < std::min(bottom, height); ++y) {
      const std::uint8_t* row =
          marked.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width);
      for (int x = std::max(left, 0); x < std::min(right, width); ++x) {
        if (row[x] != 0) return true;
      }
    }
    return false;
  };
  for (int top = 0; top < height; top += kTile) {
    for (int left = 0; left < width; left += kTile) {
      if (!any(left - reach, top - reach, left + kTile + reach, top + kTile + reach)) continue;
      tiles.push_back({left, top, std::min(left + kTile, width), std::min(top + kTile, height)});
    }
  }
  return tiles;
}

}  // namespace cutout
