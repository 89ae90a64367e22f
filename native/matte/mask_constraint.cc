#include "matte/mask_constraint.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cutout {

namespace {

constexpr std::size_t kGrain = 16;  // rows
constexpr int kMarginPart = 8;
constexpr int kSharedMarginPart = 16;
constexpr double kSharedArea = 4;
constexpr int kMostlyIn = 128;
constexpr double kWholeImage = 0.7;

/// Between samples whose centres are at i + 1/2.
LinearTap tap_at(double at, int count) {
  const double centre = std::clamp(at - 0.5, 0.0, static_cast<double>(count - 1));
  const int first = static_cast<int>(centre);
  return {first, std::min(first + 1, count - 1), centre - first};
}

/// The blocks of a network's output, and what their network pixels sum up to.
class Blocks {
 public:
  Blocks(std::span<const float> p, const NetworkMask& mask, ThreadPool& pool)
      : grid_(mask.width, mask.height),
        columns_(static_cast<std::size_t>(grid_.columns)),
        sums_(columns_ * static_cast<std::size_t>(grid_.rows)),
        before_((columns_ + 1) * static_cast<std::size_t>(grid_.rows + 1)) {
    each(pool, [&](std::size_t i, int x, int y) {
      sums_[i] = sum_block(p.data(), mask.values.data(), mask.width, mask.height, grid_.side,
                           x * grid_.side, y * grid_.side);
    });
    for (int y = 0; y < grid_.rows; ++y) {
      MaskSums row{};
      for (int x = 0; x < grid_.columns; ++x) {
        row.add(sums_[static_cast<std::size_t>(y) * columns_ + static_cast<std::size_t>(x)]);
        MaskSums& sum = before(x + 1, y + 1);
        sum = before(x + 1, y);
        sum.add(row);
      }
    }
  }

  [[nodiscard]] const BlockGrid& grid() const { return grid_; }

  /// Calls body(index, x, y) for each block.
  template <typename Body>
  void each(ThreadPool& pool, const Body& body) const {
    pool.for_each(static_cast<std::size_t>(grid_.rows), kGrain, [&](std::size_t y) {
      for (std::size_t x = 0; x < columns_; ++x) {
        body(y * columns_ + x, static_cast<int>(x), static_cast<int>(y));
      }
    });
  }

  /// Returns the sums of the blocks up to `radius` away.
  [[nodiscard]] MaskSums around(int x, int y, int radius) const {
    const int left = std::max(0, x - radius);
    const int top = std::max(0, y - radius);
    const int right = std::min(grid_.columns, x + radius + 1);
    const int bottom = std::min(grid_.rows, y + radius + 1);
    MaskSums sum = before(right, bottom);
    sum.add(before(left, bottom), -1);
    sum.add(before(right, top), -1);
    sum.add(before(left, top));
    return sum;
  }

 private:
  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * (columns_ + 1) + static_cast<std::size_t>(x);
  }
  [[nodiscard]] MaskSums& before(int x, int y) { return before_[index(x, y)]; }
  [[nodiscard]] const MaskSums& before(int x, int y) const { return before_[index(x, y)]; }

  BlockGrid grid_;
  std::size_t columns_;
  std::vector<MaskSums> sums_;
  std::vector<MaskSums> before_;  // of everything above and to the left
};

/// Edges in pixels of an image.
struct Edges {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] bool empty() const { return right <= left; }
};

/// The smallest rectangle of a width x height image with all values of a mask that are at least
/// `least`.
Edges marked_edges(const SubjectMask& mask, int width, int height, int least) {
  int left = mask.width;
  int right = 0;
  int top = mask.height;
  int bottom = 0;
  for (int y = 0; y < mask.height; ++y) {
    const auto row =
        mask.values.subspan(static_cast<std::size_t>(y) * static_cast<std::size_t>(mask.width),
                            static_cast<std::size_t>(mask.width));
    const auto marked = [least](std::uint8_t value) { return value >= least; };
    const auto first = std::ranges::find_if(row, marked);
    if (first == row.end()) continue;
    const auto last = std::find_if(row.rbegin(), row.rend(), marked);
    left = std::min(left, static_cast<int>(first - row.begin()));
    right = std::max(right, static_cast<int>(row.rend() - last));
    top = std::min(top, y);
    bottom = y + 1;
  }
  if (right <= left) return {};
  const auto scaled = [](int at, int from, int to) { return static_cast<double>(at) * to / from; };
  return {scaled(left, mask.width, width), scaled(top, mask.height, height),
          scaled(right, mask.width, width), scaled(bottom, mask.height, height)};
}

/// The edges with 1/part of the longer side around them, not clipped.
Edges with_margin(const Edges& edges, int part) {
  const double margin = std::max(edges.right - edges.left, edges.bottom - edges.top) / part;
  return {edges.left - margin, edges.top - margin, edges.right + margin, edges.bottom + margin};
}

double area(const Box& box) { return static_cast<double>(box.width) * box.height; }

}  // namespace

Box mask_view(const SubjectMask& mask, int width, int height, int grid) {
  const Box whole{0, 0, width, height};
  const Edges marked = marked_edges(mask, width, height, kOut + 1);
  if (marked.empty()) return whole;
  const Edges wide = with_margin(marked, kMarginPart);
  const auto down = [grid](double at, int side) {
    if (grid > 0) at = std::floor(at * grid / side) * side / grid;
    return static_cast<int>(std::floor(std::max(0.0, at)));
  };
  const auto up = [grid](double at, int side) {
    if (grid > 0) at = std::ceil(at * grid / side) * side / grid;
    return std::min(side, static_cast<int>(std::ceil(at)));
  };
  const int left = down(wide.left, width);
  const int top = down(wide.top, height);
  const Box view{left, top, up(wide.right, width) - left, up(wide.bottom, height) - top};
  return area(view) > kWholeImage * area(whole) ? whole : view;
}

Box shared_view(const SubjectMask& first, const SubjectMask& mask, int width, int height,
                int grid) {
  const Box shared = mask_view(first, width, height, grid);
  const Box own = mask_view(mask, width, height, grid);
  // Haze far from the subject does not count: it would move the view with every prompt.
  const Edges marked = marked_edges(mask, width, height, kMostlyIn);
  if (marked.empty()) return own;
  const Edges near = with_margin(marked, kSharedMarginPart);
  const bool inside = shared.left <= std::max(0.0, near.left) &&
                      shared.top <= std::max(0.0, near.top) &&
                      shared.left + shared.width >= std::min<double>(width, near.right) &&
                      shared.top + shared.height >= std::min<double>(height, near.bottom);
  return inside && area(shared) <= kSharedArea * area(own) ? shared : own;
}

BlockGrid::BlockGrid(int width, int height)
    : side(block_side(width, height)),
      columns((width + side - 1) / side),
      rows((height + side - 1) / side) {}

std::vector<LinearTap> mask_taps(int begin, int length, int image, int mask, int count) {
  std::vector<LinearTap> taps;
  taps.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double in_image = begin + (i + 0.5) * length / count;
    taps.push_back(tap_at(in_image * mask / image, mask));
  }
  return taps;
}

std::vector<LinearTap> block_taps(int count, int side, int blocks) {
  std::vector<LinearTap> taps;
  taps.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) taps.push_back(tap_at((i + 0.5) / side, blocks));
  return taps;
}

NetworkMask resize_mask(const SubjectMask& mask, const Box& view, int image_width, int image_height,
                        int width, int height, ThreadPool& pool) {
  const auto columns = mask_taps(view.left, view.width, image_width, mask.width, width);
  const auto rows = mask_taps(view.top, view.height, image_height, mask.height, height);
  NetworkMask result{std::vector<std::uint8_t>(columns.size() * rows.size()), width, height};
  pool.for_each(rows.size(), kGrain, [&](std::size_t y) {
    for (std::size_t x = 0; x < columns.size(); ++x) {
      result.values[y * columns.size() + x] =
          mask_between(mask.values.data(), mask.width, columns[x], rows[y]);
    }
  });
  return result;
}

void constrain(std::span<float> p, const NetworkMask& mask, ThreadPool& pool) {
  const Blocks blocks(p, mask, pool);
  const BlockGrid& grid = blocks.grid();
  std::vector<Guidance> guidances(static_cast<std::size_t>(grid.columns) *
                                  static_cast<std::size_t>(grid.rows));
  blocks.each(pool, [&](std::size_t i, int x, int y) {
    const MaskSums band = blocks.around(x, y, kBand);
    guidances[i] = guidance_of(band.in, band.out, blocks.around(x, y, kAgreementRadius));
  });
  const auto columns = block_taps(mask.width, grid.side, grid.columns);
  const auto rows = block_taps(mask.height, grid.side, grid.rows);
  pool.for_each(rows.size(), kGrain, [&](std::size_t y) {
    for (std::size_t x = 0; x < columns.size(); ++x) {
      const std::size_t i = y * columns.size() + x;
      const Guidance guidance =
          guidance_between(guidances.data(), grid.columns, columns[x], rows[y]);
      const float soft = guidance.agreement < 1
                             ? soft_mask(mask.values.data(), mask.width, mask.height,
                                         static_cast<int>(x), static_cast<int>(y))
                             : 0.0F;
      p[i] = constrained(p[i], mask.values[i], soft, guidance);
    }
  });
}

void restore_marked(std::span<float> p, std::span<const float> constrained, const NetworkMask& mask,
                    ThreadPool& pool) {
  const Blocks blocks(constrained, mask, pool);
  const int side = blocks.grid().side;
  blocks.each(pool, [&](std::size_t, int column, int row) {
    if (blocks.around(column, row, kBand).in == 0) return;
    const int left = column * side;
    const int count = std::min(mask.width, left + side) - left;
    for (int y = row * side; y < std::min(mask.height, (row + 1) * side); ++y) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * mask.width + left;
      std::copy_n(constrained.begin() + at, count, p.begin() + at);
    }
  });
}

}  // namespace cutout
