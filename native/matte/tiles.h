#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "matte/math/tile.h"

namespace cutout {

/// A rectangle of network pixels, at most kTile x kTile.
struct Tile {
  int left = 0;
  int top = 0;
  int right = 0;  // behind the last column
  int bottom = 0;
};

/// The tiles that hold a marked network pixel or have one within `radius` (at most kTile), row by
/// row.
inline std::vector<Tile> tiles_near(const std::uint8_t* marked, int width, int height, int radius) {
  std::vector<Tile> tiles;
  const auto any = [&](int left, int top, int right, int bottom) {
    for (int y = std::max(top, 0); y < std::min(bottom, height); ++y) {
      const std::uint8_t* row =
          marked + static_cast<std::size_t>(y) * static_cast<std::size_t>(width);
      unsigned found = 0;
      for (int x = std::max(left, 0); x < std::min(right, width); ++x) found |= row[x];
      if (found != 0) return true;
    }
    return false;
  };
  for (int top = 0; top < height; top += kTile) {
    for (int left = 0; left < width; left += kTile) {
      if (!any(left - radius, top - radius, left + kTile + radius, top + kTile + radius)) continue;
      tiles.push_back({left, top, std::min(left + kTile, width), std::min(top + kTile, height)});
    }
  }
  return tiles;
}

/// The smallest part of a tile that holds all its marked network pixels; the tile has at least one.
inline Tile marked_part(const Tile& tile, const std::uint8_t* marked, int width) {
  Tile part{tile.right, tile.bottom, tile.left, tile.top};
  for (int y = tile.top; y < tile.bottom; ++y) {
    const std::uint8_t* row =
        marked + static_cast<std::size_t>(y) * static_cast<std::size_t>(width);
    int left = tile.left;
    int right = tile.right;
    while (left < right && row[left] == 0) ++left;
    while (right > left && row[right - 1] == 0) --right;
    if (left == right) continue;
    part.left = std::min(part.left, left);
    part.right = std::max(part.right, right);
    part.top = std::min(part.top, y);
    part.bottom = y + 1;
  }
  return part;
}

/// The smallest part of a tile that holds all its network pixels within `radius` columns and rows
/// of a marked one; the tile has one.
inline Tile part_near(const Tile& tile, const std::uint8_t* marked, int width, int height,
                      int radius) {
  const Tile around{std::max(tile.left - radius, 0), std::max(tile.top - radius, 0),
                    std::min(tile.right + radius, width), std::min(tile.bottom + radius, height)};
  const Tile part = marked_part(around, marked, width);
  return {std::max(part.left - radius, tile.left), std::max(part.top - radius, tile.top),
          std::min(part.right + radius, tile.right), std::min(part.bottom + radius, tile.bottom)};
}

}  // namespace cutout
