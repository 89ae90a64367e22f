#include "matte/mask_constraint.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cutout {

namespace {

constexpr std::size_t kGrain = 16;   // rows
constexpr int kIn = 243;             // of 255: at least this is in
constexpr int kOut = 12;             // of 255: at most this is out
constexpr int kBlocks = 256;         // along the longer side
constexpr int kBand = 4;             // blocks
constexpr int kAgreementRadius = 8;  // blocks
constexpr int kSoftRadius = 2;       // network pixels
constexpr int kMarginPart = 8;
constexpr int kSharedMarginPart = 16;
constexpr double kSharedArea = 4;
constexpr int kMostlyIn = 128;
constexpr double kWholeImage = 0.7;

struct Position {
  int first = 0;
  int second = 0;
  double weight = 0;  // of the second
};

/// Linear interpolation at `at` between samples whose centres are at i + 1/2.
Position between(double at, int count) {
  const double centre = std::clamp(at - 0.5, 0.0, static_cast<double>(count - 1));
  const int first = static_cast<int>(centre);
  return {first, std::min(first + 1, count - 1), centre - first};
}

/// Positions in the mask of the network pixels of one axis.
std::vector<Position> positions(int begin, int length, int image, int mask, int count) {
  std::vector<Position> result;
  result.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double in_image = begin + (i + 0.5) * length / count;
    result.push_back(between(in_image * mask / image, mask));
  }
  return result;
}

std::uint8_t sample(const SubjectMask& mask, const Position& x, const Position& y) {
  const auto at = [&](int column, int row) {
    return static_cast<double>(
        mask.values[static_cast<std::size_t>(row) * static_cast<std::size_t>(mask.width) +
                    static_cast<std::size_t>(column)]);
  };
  const double top = at(x.first, y.first) * (1 - x.weight) + at(x.second, y.first) * x.weight;
  const double bottom = at(x.first, y.second) * (1 - x.weight) + at(x.second, y.second) * x.weight;
  return static_cast<std::uint8_t>(std::lround(top * (1 - y.weight) + bottom * y.weight));
}

int block_side(int width, int height) { return std::max(1, std::max(width, height) / kBlocks); }

int block_count(int side, int block) { return (side + block - 1) / block; }

/// The blocks of a network's output.
struct Blocks {
  int side = 1;  // network pixels
  int columns = 0;
  int rows = 0;
};

Blocks blocks_of(const NetworkMask& mask) {
  const int side = block_side(mask.width, mask.height);
  return {side, block_count(mask.width, side), block_count(mask.height, side)};
}

struct Sums {
  double in = 0;
  double out = 0;
  double in_p = 0;
  double out_p = 0;

  void add(const Sums& other, double sign = 1) {
    in += sign * other.in;
    out += sign * other.out;
    in_p += sign * other.in_p;
    out_p += sign * other.out_p;
  }
};

/// Adds the network pixels of a block to its sums.
Sums sum_block(std::span<const float> p, std::span<const std::uint8_t> mask, int width, int height,
               int block, int column, int row) {
  Sums sums;
  for (int y = row * block; y < std::min(height, (row + 1) * block); ++y) {
    for (int x = column * block; x < std::min(width, (column + 1) * block); ++x) {
      const auto i = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(x);
      const double value = static_cast<double>(p[i]);
      if (mask[i] >= kIn) {
        sums.in += 1;
        sums.in_p += value;
      } else if (mask[i] <= kOut) {
        sums.out += 1;
        sums.out_p += value;
      }
    }
  }
  return sums;
}

/// What the sums around a block say.
struct Guidance {
  float share = 0.5F;      // b
  float agreement = 1.0F;  // c
};

Guidance guidance(const Sums& band, const Sums& wide) {
  Guidance result;
  if (band.in + band.out > 0.5) {
    result.share = static_cast<float>(band.in / (band.in + band.out));
  }
  if (wide.in > 0.5 && wide.out > 0.5) {
    const double difference = wide.in_p / wide.in - wide.out_p / wide.out;
    result.agreement = static_cast<float>(std::clamp((difference - 0.25) / 0.5, 0.0, 1.0));
  }
  return result;
}

/// p' of one network pixel; m is the mask there, soft its mean around it.
float constrained(float p, std::uint8_t m, float soft, float share, float agreement) {
  float low = 0;
  float high = 1;
  if (m >= kIn) low = std::clamp(4 * share - 3, 0.0F, 1.0F);
  if (m <= kOut) high = std::clamp(4 * share, 0.0F, 1.0F);
  return std::clamp(agreement * p + (1 - agreement) * soft, low, high);
}

float soft_mask(std::span<const std::uint8_t> mask, int width, int height, int x, int y) {
  int sum = 0;
  for (int dy = -kSoftRadius; dy <= kSoftRadius; ++dy) {
    const auto row = static_cast<std::size_t>(std::clamp(y + dy, 0, height - 1));
    for (int dx = -kSoftRadius; dx <= kSoftRadius; ++dx) {
      const auto column = static_cast<std::size_t>(std::clamp(x + dx, 0, width - 1));
      sum += mask[row * static_cast<std::size_t>(width) + column];
    }
  }
  constexpr int kSide = 2 * kSoftRadius + 1;
  return static_cast<float>(sum) / (255.0F * kSide * kSide);
}

/// Sums of everything above and to the left of a block: (columns + 1) * (rows + 1) of them.
class RunningSums {
 public:
  RunningSums(std::span<const Sums> blocks, int columns, int rows)
      : columns_(columns),
        rows_(rows),
        sums_(static_cast<std::size_t>(columns + 1) * static_cast<std::size_t>(rows + 1)) {
    for (int y = 0; y < rows; ++y) {
      Sums row;
      for (int x = 0; x < columns; ++x) {
        row.add(blocks[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns) +
                       static_cast<std::size_t>(x)]);
        Sums& sum = at(x + 1, y + 1);
        sum = at(x + 1, y);
        sum.add(row);
      }
    }
  }

  [[nodiscard]] Sums around(int x, int y, int radius) const {
    const int left = std::max(0, x - radius);
    const int top = std::max(0, y - radius);
    const int right = std::min(columns_, x + radius + 1);
    const int bottom = std::min(rows_, y + radius + 1);
    Sums sum = at(right, bottom);
    sum.add(at(left, bottom), -1);
    sum.add(at(right, top), -1);
    sum.add(at(left, top));
    return sum;
  }

 private:
  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_ + 1) +
           static_cast<std::size_t>(x);
  }
  [[nodiscard]] Sums& at(int x, int y) { return sums_[index(x, y)]; }
  [[nodiscard]] const Sums& at(int x, int y) const { return sums_[index(x, y)]; }

  int columns_;
  int rows_;
  std::vector<Sums> sums_;
};

float interpolated(float top_left, float top_right, float bottom_left, float bottom_right,
                   const Position& x, const Position& y) {
  const auto across = static_cast<float>(x.weight);
  const auto down = static_cast<float>(y.weight);
  const float top = top_left + across * (top_right - top_left);
  const float bottom = bottom_left + across * (bottom_right - bottom_left);
  return top + down * (bottom - top);
}

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

NetworkMask resize_mask(const SubjectMask& mask, const Box& view, int image_width, int image_height,
                        int width, int height, ThreadPool& pool) {
  const auto columns = positions(view.left, view.width, image_width, mask.width, width);
  const auto rows = positions(view.top, view.height, image_height, mask.height, height);
  NetworkMask result{std::vector<std::uint8_t>(columns.size() * rows.size()), width, height};
  pool.parallel_for(rows.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t y = begin; y < end; ++y) {
      for (std::size_t x = 0; x < columns.size(); ++x) {
        result.values[y * columns.size() + x] = sample(mask, columns[x], rows[y]);
      }
    }
  });
  return result;
}

void constrain(std::span<float> p, const NetworkMask& mask, ThreadPool& pool) {
  const Blocks grid = blocks_of(mask);
  const auto columns = static_cast<std::size_t>(grid.columns);
  const auto rows = static_cast<std::size_t>(grid.rows);
  std::vector<Sums> blocks(columns * rows);
  pool.parallel_for(rows, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * columns; i < end * columns; ++i) {
      blocks[i] = sum_block(p, mask.values, mask.width, mask.height, grid.side,
                            static_cast<int>(i % columns), static_cast<int>(i / columns));
    }
  });
  const RunningSums sums(blocks, grid.columns, grid.rows);
  std::vector<Guidance> guidances(blocks.size());
  pool.parallel_for(rows, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * columns; i < end * columns; ++i) {
      const int x = static_cast<int>(i % columns);
      const int y = static_cast<int>(i / columns);
      guidances[i] = guidance(sums.around(x, y, kBand), sums.around(x, y, kAgreementRadius));
    }
  });
  std::vector<Position> across;
  across.reserve(static_cast<std::size_t>(mask.width));
  for (int x = 0; x < mask.width; ++x)
    across.push_back(between((x + 0.5) / grid.side, grid.columns));
  pool.parallel_for(
      static_cast<std::size_t>(mask.height), kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t y = begin; y < end; ++y) {
          const Position row = between((static_cast<double>(y) + 0.5) / grid.side, grid.rows);
          const Guidance* const top =
              guidances.data() + static_cast<std::size_t>(row.first) * columns;
          const Guidance* const bottom =
              guidances.data() + static_cast<std::size_t>(row.second) * columns;
          for (int x = 0; x < mask.width; ++x) {
            const Position& column = across[static_cast<std::size_t>(x)];
            const Guidance& a = top[column.first];
            const Guidance& b = top[column.second];
            const Guidance& c = bottom[column.first];
            const Guidance& d = bottom[column.second];
            const auto i = y * static_cast<std::size_t>(mask.width) + static_cast<std::size_t>(x);
            const float share = interpolated(a.share, b.share, c.share, d.share, column, row);
            const float agreement =
                interpolated(a.agreement, b.agreement, c.agreement, d.agreement, column, row);
            const float soft = agreement < 1 ? soft_mask(mask.values, mask.width, mask.height, x,
                                                         static_cast<int>(y))
                                             : 0.0F;
            p[i] = constrained(p[i], mask.values[i], soft, share, agreement);
          }
        }
      });
}

void restore_marked(std::span<float> p, std::span<const float> constrained, const NetworkMask& mask,
                    ThreadPool& pool) {
  const Blocks grid = blocks_of(mask);
  const auto columns = static_cast<std::size_t>(grid.columns);
  std::vector<Sums> blocks(columns * static_cast<std::size_t>(grid.rows));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = sum_block(constrained, mask.values, mask.width, mask.height, grid.side,
                          static_cast<int>(i % columns), static_cast<int>(i / columns));
  }
  const RunningSums sums(blocks, grid.columns, grid.rows);
  pool.parallel_for(
      static_cast<std::size_t>(grid.rows), kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
          const int top = static_cast<int>(row) * grid.side;
          const int bottom = std::min(mask.height, top + grid.side);
          for (int column = 0; column < grid.columns; ++column) {
            if (sums.around(column, static_cast<int>(row), kBand).in < 0.5) continue;
            const int left = column * grid.side;
            const int count = std::min(mask.width, left + grid.side) - left;
            for (int y = top; y < bottom; ++y) {
              const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * mask.width + left;
              std::copy_n(constrained.begin() + at, count, p.begin() + at);
            }
          }
        }
      });
}

void constrain_scalar(std::span<float> p, const SubjectMask& mask, const Box& view, int image_width,
                      int image_height, int width, int height) {
  ThreadPool alone(0);
  const std::vector<std::uint8_t> at_network =
      resize_mask(mask, view, image_width, image_height, width, height, alone).values;
  const int block = block_side(width, height);
  const int columns = block_count(width, block);
  const int rows = block_count(height, block);
  const std::vector<float> before(p.begin(), p.end());
  const auto around = [&](int column, int row, int radius) {
    Sums sum;
    for (int y = std::max(0, row - radius); y <= std::min(rows - 1, row + radius); ++y) {
      for (int x = std::max(0, column - radius); x <= std::min(columns - 1, column + radius); ++x) {
        sum.add(sum_block(before, at_network, width, height, block, x, y));
      }
    }
    return sum;
  };
  std::vector<Guidance> guidances;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      guidances.push_back(
          guidance(around(column, row, kBand), around(column, row, kAgreementRadius)));
    }
  }
  const auto of = [&](int column, int row) -> const Guidance& {
    return guidances[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                     static_cast<std::size_t>(column)];
  };
  for (int y = 0; y < height; ++y) {
    const Position row = between((y + 0.5) / block, rows);
    for (int x = 0; x < width; ++x) {
      const Position column = between((x + 0.5) / block, columns);
      const auto blend = [&](float Guidance::*part) {
        return interpolated(of(column.first, row.first).*part, of(column.second, row.first).*part,
                            of(column.first, row.second).*part, of(column.second, row.second).*part,
                            column, row);
      };
      const auto i = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(x);
      p[i] = constrained(before[i], at_network[i], soft_mask(at_network, width, height, x, y),
                         blend(&Guidance::share), blend(&Guidance::agreement));
    }
  }
}

}  // namespace cutout
