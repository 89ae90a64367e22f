#include "matte/component_filter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "matte/connected_components.h"
#include "matte/math/components.h"
#include "matte/math/probability.h"

namespace cutout {

namespace {

/// The greatest number of foreground pixels in one component.
int most_foreground(const std::vector<Component>& components) {
  int most = 0;
  for (const Component& component : components) most = std::max(most, component.foreground);
  return most;
}

/// Greatest distance in blocks from a subject at which a component of this kind is kept; -1: never.
int radius_of(Kind kind, const Box& area) {
  if (kind == Kind::kSubject) return std::numeric_limits<int>::max();
  if (kind == Kind::kHaze) return -1;
  const int part = kind == Kind::kPiece ? kPieceRadius : kWispRadius;
  return radius_in_blocks(part, area.width, area.height);
}

/// Chebyshev distance of every block to the nearest block that a subject touches.
class BlockDistance {
 public:
  BlockDistance(const Components& found, const std::vector<Kind>& kinds, const Box& area)
      : left_(area.left),
        top_(area.top),
        side_(block_side(area.width, area.height)),
        columns_((area.width + side_ - 1) / side_),
        rows_((area.height + side_ - 1) / side_),
        distance_(static_cast<std::size_t>(columns_ + 2) * static_cast<std::size_t>(rows_ + 2),
                  kFar) {
    for (const Run& run : found.runs) {
      if (kinds[static_cast<std::size_t>(run.component)] != Kind::kSubject) continue;
      std::fill(first(run), last(run) + 1, std::uint16_t{0});
    }
    for (int y = 0; y < rows_; ++y) spread(y, -1);
    for (int y = rows_ - 1; y >= 0; --y) spread(y, 1);
  }

  /// Minimum distance of the run's blocks.
  [[nodiscard]] int of(const Run& run) { return *std::min_element(first(run), last(run) + 1); }

 private:
  static constexpr std::uint16_t kFar = 0x7FFF;

  /// The blocks of a run's ends.
  std::uint16_t* first(const Run& run) {
    return at((run.begin - left_) / side_, (run.y - top_) / side_);
  }
  std::uint16_t* last(const Run& run) {
    return at((run.end - 1 - left_) / side_, (run.y - top_) / side_);
  }

  /// Updates a row of blocks from the neighbours on one side: -1, above and left, or 1.
  void spread(int y, int side) {
    for (int i = 0; i < columns_; ++i) {
      const int x = side < 0 ? i : columns_ - 1 - i;
      const std::uint16_t* beside = at(x - 1, y + side);
      const std::uint16_t least = std::min({*at(x + side, y), beside[0], beside[1], beside[2]});
      *at(x, y) = std::min(*at(x, y), static_cast<std::uint16_t>(least + 1));
    }
  }

  /// One block more on each side is far from everything.
  std::uint16_t* at(int x, int y) {
    return distance_.data() + static_cast<std::ptrdiff_t>(y + 1) * (columns_ + 2) + x + 1;
  }

  int left_;
  int top_;
  int side_;
  int columns_;
  int rows_;
  std::vector<std::uint16_t> distance_;
};

/// Sets all network pixels of the chosen components to `value`.
void write(std::span<float> p, int width, const Components& parts, const std::vector<char>& chosen,
           float value) {
  for (const Run& run : parts.runs) {
    if (chosen[static_cast<std::size_t>(run.component)] == 0) continue;
    const auto row = p.begin() + static_cast<std::ptrdiff_t>(run.y) * width;
    std::fill(row + run.begin, row + run.end, value);
  }
}

/// Returns for each hole whether it is filled. A hole that may be filled lies in one component: its
/// network pixels are connected and none of them is background.
std::vector<char> holes_to_fill(const Components& holes, const Components& found) {
  std::vector<char> chosen(holes.components.size(), 0);
  std::vector<char> seen(holes.components.size(), 0);
  std::size_t at = 0;  // index into found.runs, which cover the runs of these holes
  for (const Run& run : holes.runs) {
    const auto hole = static_cast<std::size_t>(run.component);
    if (seen[hole] != 0 || holes.components[hole].low < kHole) continue;
    seen[hole] = 1;
    const auto before = [&run](const Run& other) {
      return other.y < run.y || (other.y == run.y && other.end <= run.begin);
    };
    while (at < found.runs.size() && before(found.runs[at])) ++at;
    const Component& around = found.components[static_cast<std::size_t>(found.runs[at].component)];
    chosen[hole] = static_cast<char>(is_filled(holes.components[hole].area, around.area));
  }
  return chosen;
}

constexpr int kShade = 24;       // of 255: within this a colour is the background's or its shadow's
constexpr int kSquarePart = 64;  // a fraction 1/64 of the longer side

/// How far the network pixel at `at` is from what planes of `size` show at the first one and its
/// shades: 0 within kShade, 1 from twice that on.
float coloured(const float* planes, std::size_t size, std::size_t at) {
  float squared = 0;
  float along = 0;
  float background = 0;
  for (const float* plane = planes; plane != planes + 3 * size; plane += size) {
    squared += plane[at] * plane[at];
    along += plane[at] * plane[0];
    background += plane[0] * plane[0];
  }
  const float shade = along / std::max(background, 1.0F);
  const float distance = squared - 2 * shade * along + shade * shade * background;
  return clamp01(std::sqrt(std::max(distance, 0.0F)) / kShade - 1);
}

int count(const std::vector<char>& chosen) {
  return static_cast<int>(std::count(chosen.begin(), chosen.end(), char{1}));
}

}  // namespace

ComponentSummary filter_components(std::span<float> p, int width, const Box& area,
                                   ThreadPool& pool) {
  const Components found =
      find_components(p, width, area, kCertainBackground, 1, Connectivity::kEight, pool);
  const int most = most_foreground(found.components);
  if (most == 0) return {};

  std::vector<Kind> kinds;
  kinds.reserve(found.components.size());
  bool needs_distance = false;
  for (const Component& component : found.components) {
    kinds.push_back(kind_of(component.foreground, component.high >= kWisp, most));
    needs_distance = needs_distance || kinds.back() == Kind::kPiece || kinds.back() == Kind::kWisp;
  }
  std::vector<char> removed(found.components.size(), 0);
  for (std::size_t i = 0; i < removed.size(); ++i) removed[i] = kinds[i] != Kind::kSubject;
  if (needs_distance) {
    BlockDistance distance(found, kinds, area);
    for (const Run& run : found.runs) {
      const auto component = static_cast<std::size_t>(run.component);
      if (removed[component] == 0 || kinds[component] == Kind::kHaze) continue;
      if (distance.of(run) <= radius_of(kinds[component], area)) removed[component] = 0;
    }
  }
  write(p, width, found, removed, 0);

  const Components holes =
      find_components(p, width, area, 0, kCertainForeground, Connectivity::kFour, pool);
  const std::vector<char> filled = holes_to_fill(holes, found);
  write(p, width, holes, filled, 1);
  return {count(removed), count(filled)};
}

bool has_flat_border(ConstImageView rgba) {
  const int right = rgba.width - 1;
  const int bottom = rgba.height - 1;
  for (const Box& side : {Box{0, 0, rgba.width, 1}, Box{0, bottom, rgba.width, 1},
                          Box{0, 0, 1, rgba.height}, Box{right, 0, 1, rgba.height}}) {
    const ConstImageView line = part_of(rgba, side);
    const int bytes = 4 * side.width;
    for (int i = 0; i < bytes * side.height; ++i) {
      const int difference = line.row(i / bytes)[i % bytes] - rgba.data[i % 4];
      if (2 * std::abs(difference) > kShade) return false;
    }
  }
  return true;
}

bool restore_coloured_holes(std::span<float> p, int width, std::span<const float> planes,
                            ThreadPool& pool) {
  const auto columns = static_cast<std::size_t>(width);
  const Box area{0, 0, width, static_cast<int>(p.size() / columns)};
  const Components parts = find_components(p, width, area, 0, kHole, Connectivity::kFour, pool);
  if (parts.components.size() < 2) return false;  // the background alone
  std::vector<float> raised(p.begin(), p.end());
  std::vector<int> sides(p.size(), 0);  // of the largest coloured square that ends here
  std::vector<char> wide(parts.components.size(), 0);
  for (const Run& run : parts.runs) {
    for (int x = run.begin; x < run.end; ++x) {
      const std::size_t at =
          static_cast<std::size_t>(run.y) * columns + static_cast<std::size_t>(x);
      const float share = coloured(planes.data(), p.size(), at);
      raised[at] = std::max(p[at], share);
      if (share < 1 || p[at] >= 1 - kHole || x == 0 || run.y == 0) continue;
      sides[at] = 1 + std::min({sides[at - 1], sides[at - columns], sides[at - columns - 1]});
      if (sides[at] * kSquarePart >= std::max(width, area.height))
        wide[static_cast<std::size_t>(run.component)] = 1;
    }
  }
  for (const Run& run : parts.runs) {
    const bool open = run.y == 0 || run.y == area.height - 1 || run.begin == 0 || run.end == width;
    if (open && wide[static_cast<std::size_t>(run.component)] != 0) return false;
  }
  for (const Run& run : parts.runs) {
    if (wide[static_cast<std::size_t>(run.component)] == 0) continue;
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(run.y) * width + run.begin;
    std::copy_n(raised.begin() + first, run.end - run.begin, p.begin() + first);
  }
  return count(wide) > 0;
}

Box network_area(const Box& roi, int width, int height, int p_width, int p_height) {
  constexpr int kSupport = 2;  // network pixels on each side that the spline reads
  const auto first = [](int begin, int samples, int pixels) {
    const std::int64_t at = static_cast<std::int64_t>(begin) * samples / pixels;
    return std::clamp(static_cast<int>(at) - kSupport, 0, samples - 1);
  };
  const auto end = [](int after, int samples, int pixels) {
    const std::int64_t at = (static_cast<std::int64_t>(after) * samples + pixels - 1) / pixels;
    return std::clamp(static_cast<int>(at) + kSupport, 1, samples);
  };
  const int left = first(roi.left, p_width, width);
  const int top = first(roi.top, p_height, height);
  return {left, top, end(roi.left + roi.width, p_width, width) - left,
          end(roi.top + roi.height, p_height, height) - top};
}

}  // namespace cutout
