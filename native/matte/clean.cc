#include "matte/clean.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "matte/regions.h"

namespace cutout {

namespace {

constexpr float kBackground = 0.02F;  // as in apply.cc
constexpr float kForeground = 0.98F;
constexpr float kWisp = 0.1F;
constexpr float kDent = 0.9F;
constexpr std::int64_t kSubjectPart = 200;  // of the sure cells of the greatest island
constexpr std::int64_t kPiecePart = 5000;
constexpr std::int64_t kDentPart = 50;  // of the cells around it
constexpr int kPieceReach = 8;          // parts of the longer side
constexpr int kWispReach = 16;

/// Cells a side of the blocks between which distances are taken.
int block_side(const Box& area) { return std::max(1, std::max(area.width, area.height) / 256); }

/// How many blocks a part of the longer side is, rounded up.
int reach_in_blocks(int part, const Box& area) {
  const int unit = part * block_side(area);
  return (std::max(area.width, area.height) + unit - 1) / unit;
}

enum class Kind { kSubject, kPiece, kWisp, kHaze };

/// Sure cells of the island that has most of them; 0 when none has any.
int most_sure(const std::vector<Region>& islands) {
  int most = 0;
  for (const Region& island : islands) most = std::max(most, island.sure);
  return most;
}

Kind kind_of(const Region& island, int most) {
  if (island.sure > 0 && island.sure * kSubjectPart >= most) return Kind::kSubject;
  if (island.sure > 0 && island.sure * kPiecePart >= most) return Kind::kPiece;
  return island.high >= kWisp ? Kind::kWisp : Kind::kHaze;
}

/// Furthest in blocks that an island of this kind may lie from a subject; -1: it never stays.
int reach_of(Kind kind, const Box& area) {
  switch (kind) {
    case Kind::kSubject:
      return std::numeric_limits<int>::max();
    case Kind::kPiece:
      return reach_in_blocks(kPieceReach, area);
    case Kind::kWisp:
      return reach_in_blocks(kWispReach, area);
    case Kind::kHaze:
      break;
  }
  return -1;
}

/// Distance of every block to the nearest one that a subject touches, diagonal steps counted as
/// one.
class BlockDistance {
 public:
  BlockDistance(const Regions& islands, const std::vector<Kind>& kinds, const Box& area)
      : left_(area.left),
        top_(area.top),
        side_(block_side(area)),
        columns_((area.width + side_ - 1) / side_),
        rows_((area.height + side_ - 1) / side_),
        distance_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_), kFar) {
    for (const Run& run : islands.runs) {
      if (kinds[static_cast<std::size_t>(run.region)] != Kind::kSubject) continue;
      std::fill(first(run), last(run) + 1, std::uint16_t{0});
    }
    for (int y = 0; y < rows_; ++y) {
      for (int x = 0; x < columns_; ++x) spread(x, y, -1);
    }
    for (int y = rows_ - 1; y >= 0; --y) {
      for (int x = columns_ - 1; x >= 0; --x) spread(x, y, 1);
    }
  }

  /// Least distance of the run's blocks.
  [[nodiscard]] int of(const Run& run) { return *std::min_element(first(run), last(run) + 1); }

 private:
  static constexpr std::uint16_t kFar = 0x7FFF;

  /// The blocks of a run's ends.
  std::uint16_t* first(const Run& run) {
    return &at((run.begin - left_) / side_, (run.y - top_) / side_);
  }
  std::uint16_t* last(const Run& run) {
    return &at((run.end - 1 - left_) / side_, (run.y - top_) / side_);
  }

  /// One block from its neighbour in the row and the three in the row before (step -1) or after.
  void spread(int x, int y, int step) {
    std::uint16_t& here = at(x, y);
    const auto take = [&](int nx, int ny) {
      if (nx < 0 || nx >= columns_ || ny < 0 || ny >= rows_) return;
      here = std::min(here, static_cast<std::uint16_t>(at(nx, ny) + 1));
    };
    take(x + step, y);
    for (int dx = -1; dx <= 1; ++dx) take(x + dx, y + step);
  }

  std::uint16_t& at(int x, int y) {
    return distance_[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) +
                     static_cast<std::size_t>(x)];
  }

  int left_;
  int top_;
  int side_;
  int columns_;
  int rows_;
  std::vector<std::uint16_t> distance_;
};

bool closes(const Region& dent, std::int64_t around) {
  return dent.low >= kDent && dent.area * kDentPart <= around;
}

void write(std::span<float> p, int width, const Regions& parts, const std::vector<char>& chosen,
           float value) {
  for (const Run& run : parts.runs) {
    if (chosen[static_cast<std::size_t>(run.region)] == 0) continue;
    const auto row = p.begin() + static_cast<std::ptrdiff_t>(run.y) * width;
    std::fill(row + run.begin, row + run.end, value);
  }
}

/// Which dents close, judged by the island each lies in: all its cells do, since they are no
/// background and neighbours of one another.
std::vector<char> closing(const Regions& dents, const Regions& islands) {
  std::vector<char> chosen(dents.regions.size(), 0);
  std::vector<char> seen(dents.regions.size(), 0);
  std::size_t at = 0;  // in the islands' runs, which cover the dents'
  for (const Run& run : dents.runs) {
    const auto dent = static_cast<std::size_t>(run.region);
    if (seen[dent] != 0 || dents.regions[dent].low < kDent) continue;
    seen[dent] = 1;
    const auto before = [&run](const Run& other) {
      return other.y < run.y || (other.y == run.y && other.end <= run.begin);
    };
    while (at < islands.runs.size() && before(islands.runs[at])) ++at;
    const Region& around = islands.regions[static_cast<std::size_t>(islands.runs[at].region)];
    chosen[dent] = static_cast<char>(closes(dents.regions[dent], around.area));
  }
  return chosen;
}

int count(const std::vector<char>& chosen) {
  return static_cast<int>(std::count(chosen.begin(), chosen.end(), char{1}));
}

}  // namespace

CleanSummary clean_alpha(std::span<float> p, int width, const Box& area, ThreadPool& pool) {
  const Regions islands = find_regions(p, width, area, kBackground, 1, Neighbours::kEight, pool);
  const int most = most_sure(islands.regions);
  if (most == 0) return {};

  std::vector<Kind> kinds;
  kinds.reserve(islands.regions.size());
  bool questioned = false;  // whether any distance is needed
  for (const Region& island : islands.regions) {
    kinds.push_back(kind_of(island, most));
    questioned = questioned || kinds.back() == Kind::kPiece || kinds.back() == Kind::kWisp;
  }
  std::vector<char> gone(islands.regions.size(), 0);
  for (std::size_t i = 0; i < gone.size(); ++i) gone[i] = kinds[i] != Kind::kSubject;
  if (questioned) {
    BlockDistance distance(islands, kinds, area);
    for (const Run& run : islands.runs) {
      const auto island = static_cast<std::size_t>(run.region);
      if (gone[island] == 0 || kinds[island] == Kind::kHaze) continue;
      if (distance.of(run) <= reach_of(kinds[island], area)) gone[island] = 0;
    }
  }
  write(p, width, islands, gone, 0);

  const Regions dents = find_regions(p, width, area, 0, kForeground, Neighbours::kFour, pool);
  const std::vector<char> closed = closing(dents, islands);
  write(p, width, dents, closed, 1);
  return {count(gone), count(closed)};
}

CleanSummary clean_alpha_scalar(std::span<float> p, int width, const Box& area) {
  const Regions islands = find_regions_scalar(p, width, area, kBackground, 1, Neighbours::kEight);
  const int most = most_sure(islands.regions);
  if (most == 0) return {};

  // For every cell the island it lies in.
  std::vector<int> labels(p.size(), -1);
  const auto at = [width](int x, int y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  };
  for (const Run& run : islands.runs) {
    for (int x = run.begin; x < run.end; ++x) labels[at(x, run.y)] = run.region;
  }
  const auto kind = [&](int label) {
    return kind_of(islands.regions[static_cast<std::size_t>(label)], most);
  };
  const int side = block_side(area);
  std::vector<char> gone(islands.regions.size(), 1);
  for (int y = area.top; y < area.top + area.height; ++y) {
    for (int x = area.left; x < area.left + area.width; ++x) {
      const int label = labels[at(x, y)];
      if (label < 0 || gone[static_cast<std::size_t>(label)] == 0) continue;
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
      if (nearest <= reach_of(kind(label), area)) gone[static_cast<std::size_t>(label)] = 0;
    }
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (labels[i] >= 0 && gone[static_cast<std::size_t>(labels[i])] != 0) p[i] = 0;
  }

  const Regions dents = find_regions_scalar(p, width, area, 0, kForeground, Neighbours::kFour);
  int closed = 0;
  std::vector<char> filled(dents.regions.size(), 0);
  for (const Run& run : dents.runs) {
    const auto dent = static_cast<std::size_t>(run.region);
    if (dents.regions[dent].low < kDent) continue;
    const int label = labels[at(run.begin, run.y)];
    const std::int64_t around = islands.regions[static_cast<std::size_t>(label)].area;
    if (!closes(dents.regions[dent], around)) continue;
    closed += filled[dent] == 0 ? 1 : 0;
    filled[dent] = 1;
    for (int x = run.begin; x < run.end; ++x) p[at(x, run.y)] = 1;
  }
  return {count(gone), closed};
}

Box cells_of(const Box& roi, int width, int height, int p_width, int p_height) {
  constexpr int kReach = 2;  // cells that the spline looks further
  const auto first = [](int begin, int cells, int pixels) {
    const std::int64_t cell = static_cast<std::int64_t>(begin) * cells / pixels;
    return std::clamp(static_cast<int>(cell) - kReach, 0, cells - 1);
  };
  const auto end = [](int after, int cells, int pixels) {
    const std::int64_t cell = (static_cast<std::int64_t>(after) * cells + pixels - 1) / pixels;
    return std::clamp(static_cast<int>(cell) + kReach, 1, cells);
  };
  const int left = first(roi.left, p_width, width);
  const int top = first(roi.top, p_height, height);
  return {left, top, end(roi.left + roi.width, p_width, width) - left,
          end(roi.top + roi.height, p_height, height) - top};
}

}  // namespace cutout
