#include "matte/connected_components.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/simd.h"
#include "matte/math/probability.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 64;  // rows
constexpr int kSegment = 64;        // network pixels classified together

/// How many of n network pixels lie within [least, most].
CUTOUT_SIMD int count_within(const float* p, int n, float least, float most) {
  int count = 0;
  for (int x = 0; x < n; ++x)
    count += static_cast<int>(p[x] >= least) & static_cast<int>(p[x] <= most);
  return count;
}

/// Appends the runs of columns left .. right - 1 of a row. Segments that lie wholly inside or
/// outside are decided at once.
void runs_of(const float* line, int left, int right, int y, float least, float most,
             std::vector<Run>& runs) {
  int begin = -1;  // of the current run
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

CUTOUT_SIMD void measure(const float* __restrict p, int n, Component& component) {
  int foreground = 0;
  float low = p[0];
  float high = p[0];
  for (int x = 0; x < n; ++x) {
    foreground += static_cast<int>(p[x] >= kForegroundThreshold);
    low = p[x] < low ? p[x] : low;
    high = p[x] > high ? p[x] : high;
  }
  component.area = n;
  component.foreground = foreground;
  component.low = low;
  component.high = high;
}

/// Disjoint sets of runs (union-find); the root of a set is its first run.
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
void join_rows(const std::vector<Run>& runs, int radius, Sets& sets) {
  std::size_t above = 0;  // first run of the row above that may touch the current one
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    while (above < i && (runs[above].y < run.y - 1 ||
                         (runs[above].y == run.y - 1 && runs[above].end + radius <= run.begin))) {
      ++above;
    }
    for (std::size_t j = above; j < i && runs[j].y == run.y - 1 && runs[j].begin < run.end + radius;
         ++j) {
      sets.join(static_cast<int>(i), static_cast<int>(j));
    }
  }
}

void add(const Component& part, Component& component) {
  component.area += part.area;
  component.foreground += part.foreground;
  component.low = std::min(component.low, part.low);
  component.high = std::max(component.high, part.high);
}

}  // namespace

Components find_components(std::span<const float> p, int width, const Box& area, float least,
                           float most, Connectivity connectivity, ThreadPool& pool) {
  const auto rows = static_cast<std::size_t>(area.height);
  struct Band {
    std::vector<Run> runs;
    std::vector<Component> parts;
  };
  std::vector<Band> bands((rows + kGrain - 1) / kGrain);
  pool.for_each(rows, kGrain, [&](std::size_t row) {
    Band& band = bands[row / kGrain];
    const int y = area.top + static_cast<int>(row);
    const float* line = p.data() + static_cast<std::ptrdiff_t>(y) * width;
    const std::size_t before = band.runs.size();
    runs_of(line, area.left, area.left + area.width, y, least, most, band.runs);
    for (std::size_t i = before; i < band.runs.size(); ++i) {
      const Run& run = band.runs[i];
      measure(line + run.begin, run.end - run.begin, band.parts.emplace_back());
    }
  });

  Components result;
  std::vector<Component> parts;
  for (Band& band : bands) {
    result.runs.insert(result.runs.end(), band.runs.begin(), band.runs.end());
    parts.insert(parts.end(), band.parts.begin(), band.parts.end());
    band = {};
  }
  Sets sets(result.runs.size());
  join_rows(result.runs, connectivity == Connectivity::kEight ? 1 : 0, sets);
  for (std::size_t i = 0; i < result.runs.size(); ++i) {
    Run& run = result.runs[i];
    const auto root = static_cast<std::size_t>(sets.root(static_cast<int>(i)));
    if (root == i) {
      run.component = static_cast<int>(result.components.size());
      result.components.emplace_back();
    } else {
      run.component = result.runs[root].component;
    }
    add(parts[i], result.components[static_cast<std::size_t>(run.component)]);
  }
  return result;
}

}  // namespace cutout
