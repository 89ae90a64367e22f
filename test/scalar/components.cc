#include "matte/math/components.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "matte/math/probability.h"
#include "scalar/matte.h"

namespace cutout::test {

namespace {

int most_foreground(const std::vector<Component>& components) {
  int most = 0;
  for (const Component& component : components) most = std::max(most, component.foreground);
  return most;
}

/// Greatest distance in blocks from a subject at which a component of this kind is kept; -1: never.
int radius_of(Kind kind, const Box& area) {
  switch (kind) {
    case Kind::kSubject:
      return std::numeric_limits<int>::max();
    case Kind::kPiece:
      return radius_in_blocks(kPieceRadius, area.width, area.height);
    case Kind::kWisp:
      return radius_in_blocks(kWispRadius, area.width, area.height);
    case Kind::kHaze:
      break;
  }
  return -1;
}

}  // namespace

Components find_components_scalar(std::span<const float> p, int width, const Box& area, float least,
                                  float most, Connectivity connectivity) {
  const int right_end = area.left + area.width;
  const int bottom_end = area.top + area.height;
  const auto at = [&](int x, int y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  };
  const auto inside = [&](int x, int y) {
    return x >= area.left && x < right_end && y >= area.top && y < bottom_end &&
           p[at(x, y)] >= least && p[at(x, y)] <= most;
  };
  std::vector<int> labels(p.size(), -1);
  Components result;
  for (int y = area.top; y < bottom_end; ++y) {
    for (int x = area.left; x < right_end; ++x) {
      if (!inside(x, y) || labels[at(x, y)] >= 0) continue;
      const auto label = static_cast<int>(result.components.size());
      Component& component = result.components.emplace_back();
      std::vector<std::pair<int, int>> waiting{{x, y}};
      labels[at(x, y)] = label;
      while (!waiting.empty()) {
        const auto [cx, cy] = waiting.back();
        waiting.pop_back();
        const float value = p[at(cx, cy)];
        component.area += 1;
        component.foreground += static_cast<int>(value >= kForegroundThreshold);
        component.low = std::min(component.low, value);
        component.high = std::max(component.high, value);
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) {
            if (connectivity == Connectivity::kFour && dx != 0 && dy != 0) continue;
            if (!inside(cx + dx, cy + dy) || labels[at(cx + dx, cy + dy)] >= 0) continue;
            labels[at(cx + dx, cy + dy)] = label;
            waiting.emplace_back(cx + dx, cy + dy);
          }
        }
      }
    }
  }
  for (int y = area.top; y < bottom_end; ++y) {
    for (int x = area.left; x < right_end; ++x) {
      const int label = labels[at(x, y)];
      if (label < 0) continue;
      if (x > area.left && labels[at(x - 1, y)] == label) {
        result.runs.back().end = x + 1;
      } else {
        result.runs.push_back({y, x, x + 1, label});
      }
    }
  }
  return result;
}

ComponentSummary filter_components_scalar(std::span<float> p, int width, const Box& area) {
  const Components found =
      find_components_scalar(p, width, area, kCertainBackground, 1, Connectivity::kEight);
  const int most = most_foreground(found.components);
  if (most == 0) return {};

  // For every network pixel the index of its component.
  std::vector<int> labels(p.size(), -1);
  const auto at = [width](int x, int y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  };
  for (const Run& run : found.runs) {
    for (int x = run.begin; x < run.end; ++x) labels[at(x, run.y)] = run.component;
  }
  const auto kind = [&](int label) {
    const Component& component = found.components[static_cast<std::size_t>(label)];
    return kind_of(component.foreground, component.high >= kWisp, most);
  };
  const int side = block_side(area.width, area.height);
  std::vector<char> removed(found.components.size(), 1);
  for (int y = area.top; y < area.top + area.height; ++y) {
    for (int x = area.left; x < area.left + area.width; ++x) {
      const int label = labels[at(x, y)];
      if (label < 0 || removed[static_cast<std::size_t>(label)] == 0) continue;
      int nearest = std::numeric_limits<int>::max();
      for (int sy = area.top; sy < area.top + area.height; ++sy) {
        for (int sx = area.left; sx < area.left + area.width; ++sx) {
          const int other = labels[at(sx, sy)];
          if (other < 0 || kind(other) != Kind::kSubject) continue;
          const int columns = (x - area.left) / side - (sx - area.left) / side;
          const int rows = (y - area.top) / side - (sy - area.top) / side;
          nearest = std::min(nearest, std::max(std::abs(columns), std::abs(rows)));
        }
      }
      if (nearest <= radius_of(kind(label), area)) removed[static_cast<std::size_t>(label)] = 0;
    }
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (labels[i] >= 0 && removed[static_cast<std::size_t>(labels[i])] != 0) p[i] = 0;
  }

  const Components holes =
      find_components_scalar(p, width, area, 0, kCertainForeground, Connectivity::kFour);
  int filled = 0;
  std::vector<char> counted(holes.components.size(), 0);
  for (const Run& run : holes.runs) {
    const auto hole = static_cast<std::size_t>(run.component);
    if (holes.components[hole].low < kHole) continue;
    const int label = labels[at(run.begin, run.y)];
    const std::int64_t around = found.components[static_cast<std::size_t>(label)].area;
    if (!is_filled(holes.components[hole].area, around)) continue;
    filled += counted[hole] == 0 ? 1 : 0;
    counted[hole] = 1;
    for (int x = run.begin; x < run.end; ++x) p[at(x, run.y)] = 1;
  }
  return {static_cast<int>(std::ranges::count(removed, char{1})), filled};
}

}  // namespace cutout::test
