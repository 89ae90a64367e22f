#include "matte/regions.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 64;  // rows
constexpr int kSegment = 64;        // cells judged together

/// How many of n cells lie within [least, most].
CUTOUT_SIMD int count_within(const float* p, int n, float least, float most) {
  int count = 0;
  for (int x = 0; x < n; ++x)
    count += static_cast<int>(p[x] >= least) & static_cast<int>(p[x] <= most);
  return count;
}

/// The runs of columns left..right-1 of a row. Most segments lie wholly inside or outside: one look
/// decides.
void runs_of(const float* line, int left, int right, int y, float least, float most,
             std::vector<Run>& runs) {
  int begin = -1;  // of the run that is open
  const auto close = [&](int end) {
    if (begin >= 0) runs.push_back({y, begin, end, 0});
    begin = -1;
  };
  for (int x = left; x < right; x += kSegment) {
    const int n = std::min(kSegment, right - x);
    const int within = count_within(line + x, n, least, most);
    if (within == n) {
      if (begin < 0) begin = x;
    } else if (within == 0) {
      close(x);
    } else {
      for (int i = x; i < x + n; ++i) {
        const bool inside = line[i] >= least && line[i] <= most;
        if (!inside) close(i);
        if (inside && begin < 0) begin = i;
      }
    }
  }
  close(right);
}

constexpr float kSure = 0.5F;

CUTOUT_SIMD void look_at(const float* __restrict p, int n, Region& region) {
  int sure = 0;
  float low = p[0];
  float high = p[0];
  for (int x = 0; x < n; ++x) {
    sure += static_cast<int>(p[x] >= kSure);
    low = p[x] < low ? p[x] : low;
    high = p[x] > high ? p[x] : high;
  }
  region.area = n;
  region.sure = sure;
  region.low = low;
  region.high = high;
}

/// Sets of runs; the root of a set is its first run.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    for (std::size_t i = 0; i < count; ++i) parent_[i] = static_cast<int>(i);
  }

  int root(int i) {
    while (parent_[at(i)] != i) {
      parent_[at(i)] = parent_[at(parent_[at(i)])];
      i = parent_[at(i)];
    }
    return i;
  }

  void join(int a, int b) {
    a = root(a);
    b = root(b);
    if (a < b) std::swap(a, b);
    parent_[at(a)] = b;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::vector<int> parent_;
};

/// Joins the runs of every row with those they touch in the row above.
void join_rows(const std::vector<Run>& runs, int reach, Sets& sets) {
  std::size_t above = 0;  // first run that may touch the current one
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    while (above < i && (runs[above].y < run.y - 1 ||
                         (runs[above].y == run.y - 1 && runs[above].end + reach <= run.begin))) {
      ++above;
    }
    for (std::size_t j = above; j < i && runs[j].y == run.y - 1 && runs[j].begin < run.end + reach;
         ++j) {
      sets.join(static_cast<int>(i), static_cast<int>(j));
    }
  }
}

void add(const Region& part, const Run& run, Region& region) {
  if (region.area == 0) {
    region.box = {run.begin, run.y, run.end - run.begin, 1};
  } else {
    const int right = std::max(region.box.left + region.box.width, run.end);
    region.box.left = std::min(region.box.left, run.begin);
    region.box.width = right - region.box.left;
    region.box.height = run.y + 1 - region.box.top;  // runs come row by row
  }
  region.area += part.area;
  region.sure += part.sure;
  region.low = std::min(region.low, part.low);
  region.high = std::max(region.high, part.high);
}

}  // namespace

Regions find_regions(std::span<const float> p, int width, const Box& area, float least, float most,
                     Neighbours neighbours, ThreadPool& pool) {
  const auto rows = static_cast<std::size_t>(area.height);
  struct Band {
    std::vector<Run> runs;
    std::vector<Region> parts;
  };
  std::vector<Band> bands((rows + kGrain - 1) / kGrain);
  pool.parallel_for(rows, kGrain, [&](std::size_t begin, std::size_t end) {
    Band& band = bands[begin / kGrain];
    for (int y = area.top + static_cast<int>(begin); y < area.top + static_cast<int>(end); ++y) {
      const float* line = p.data() + static_cast<std::ptrdiff_t>(y) * width;
      const std::size_t before = band.runs.size();
      runs_of(line, area.left, area.left + area.width, y, least, most, band.runs);
      for (std::size_t i = before; i < band.runs.size(); ++i) {
        const Run& run = band.runs[i];
        look_at(line + run.begin, run.end - run.begin, band.parts.emplace_back());
      }
    }
  });

  Regions result;
  std::vector<Region> parts;
  for (Band& band : bands) {
    result.runs.insert(result.runs.end(), band.runs.begin(), band.runs.end());
    parts.insert(parts.end(), band.parts.begin(), band.parts.end());
    band = {};
  }
  Sets sets(result.runs.size());
  join_rows(result.runs, neighbours == Neighbours::kEight ? 1 : 0, sets);
  for (std::size_t i = 0; i < result.runs.size(); ++i) {
    Run& run = result.runs[i];
    const auto root = static_cast<std::size_t>(sets.root(static_cast<int>(i)));
    if (root == i) {
      run.region = static_cast<int>(result.regions.size());
      result.regions.emplace_back();
    } else {
      run.region = result.runs[root].region;
    }
    add(parts[i], run, result.regions[static_cast<std::size_t>(run.region)]);
  }
  return result;
}

Regions find_regions_scalar(std::span<const float> p, int width, const Box& area, float least,
                            float most, Neighbours neighbours) {
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
  Regions result;
  for (int y = area.top; y < bottom_end; ++y) {
    for (int x = area.left; x < right_end; ++x) {
      if (!inside(x, y) || labels[at(x, y)] >= 0) continue;
      const auto label = static_cast<int>(result.regions.size());
      Region& region = result.regions.emplace_back();
      int right = x;
      int bottom = y;
      region.box = {x, y, 1, 1};
      std::vector<std::pair<int, int>> waiting{{x, y}};
      labels[at(x, y)] = label;
      while (!waiting.empty()) {
        const auto [cx, cy] = waiting.back();
        waiting.pop_back();
        const float value = p[at(cx, cy)];
        region.area += 1;
        region.sure += static_cast<int>(value >= kSure);
        region.low = std::min(region.low, value);
        region.high = std::max(region.high, value);
        region.box.left = std::min(region.box.left, cx);
        right = std::max(right, cx);
        bottom = std::max(bottom, cy);
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) {
            if (neighbours == Neighbours::kFour && dx != 0 && dy != 0) continue;
            if (!inside(cx + dx, cy + dy) || labels[at(cx + dx, cy + dy)] >= 0) continue;
            labels[at(cx + dx, cy + dy)] = label;
            waiting.emplace_back(cx + dx, cy + dy);
          }
        }
      }
      region.box.width = right - region.box.left + 1;
      region.box.height = bottom - region.box.top + 1;
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

}  // namespace cutout
