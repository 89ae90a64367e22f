#include "matte/fusion.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/large_memory.h"
#include "matte/connected_components.h"
#include "matte/math/fusion.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 64;  // rows
constexpr int kStrip = 64;          // columns worked on together
constexpr std::array kDifferences{kHigher, kLower};

/// A difference as a value of 0..1.
float as_value(int difference) { return 0.5F * static_cast<float>(difference); }

/// How erosion and dilation combine the bytes of a window, bit by bit.
struct Erosion {
  static constexpr std::uint8_t kIdentity = 0xFF;
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const {
    return static_cast<std::uint8_t>(a & b);
  }
};
struct Dilation {
  static constexpr std::uint8_t kIdentity = 0;
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const {
    return static_cast<std::uint8_t>(a | b);
  }
};

/// Combines each of the first n entries of `stride` bytes with the `length` - 1 entries after it:
/// windows of doubled lengths, then two that overlap. There are n + length - 1 entries.
template <typename Op>
void reduce_line(std::uint8_t* entries, std::size_t n, std::size_t length, std::size_t stride) {
  std::size_t done = 1;
  std::size_t left = n + length - 1;  // entries whose window lies inside
  const auto with = [&](std::size_t step, std::size_t count) {
    const std::uint8_t* other = entries + step * stride;
    for (std::size_t i = 0; i < count * stride; ++i) entries[i] = Op{}(entries[i], other[i]);
  };
  for (; 2 * done <= length; done *= 2) {
    left -= done;
    with(done, left);
  }
  if (done < length) with(length - done, n);
}

/// Erosion or dilation by a square, in place: every byte combined with all bytes at most `radius`
/// rows and columns away.
template <typename Op>
void apply_morphology(std::span<std::uint8_t> plane, int width, int height, int radius,
                      ThreadPool& pool) {
  const auto w = static_cast<std::size_t>(width);
  const auto h = static_cast<std::size_t>(height);
  const auto r = static_cast<std::size_t>(radius);
  const std::size_t length = 2 * r + 1;
  pool.parallel_for(h, kGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> line(w + 2 * r);
    for (std::size_t y = begin; y < end; ++y) {
      std::fill(line.begin(), line.end(), Op::kIdentity);
      std::copy_n(plane.data() + y * w, w, line.data() + r);
      reduce_line<Op>(line.data(), w, length, 1);
      std::copy_n(line.data(), w, plane.data() + y * w);
    }
  });
  const std::size_t strips = (w + kStrip - 1) / kStrip;
  pool.parallel_for(strips, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t strip = begin; strip < end; ++strip) {
      const std::size_t left = strip * kStrip;
      const std::size_t columns = std::min<std::size_t>(kStrip, w - left);
      std::vector<std::uint8_t> rows((h + 2 * r) * columns, Op::kIdentity);
      for (std::size_t y = 0; y < h; ++y) {
        std::copy_n(plane.data() + y * w + left, columns, rows.data() + (y + r) * columns);
      }
      reduce_line<Op>(rows.data(), h, length, columns);
      for (std::size_t y = 0; y < h; ++y) {
        std::copy_n(rows.data() + y * columns, columns, plane.data() + y * w + left);
      }
    }
  });
}

/// Takes the second output in every region where it is preferred.
void select_regions(std::span<float> first, std::span<const float> second, const Components& found,
                    int width, FusionSummary& summary) {
  std::vector<std::int64_t> gains(found.components.size());
  const auto at = [width](const Run& run) {
    return static_cast<std::size_t>(run.y) * static_cast<std::size_t>(width);
  };
  for (const Run& run : found.runs) {
    std::int64_t& gain = gains[static_cast<std::size_t>(run.component)];
    for (int x = run.begin; x < run.end; ++x) {
      const std::size_t i = at(run) + static_cast<std::size_t>(x);
      gain += confidence_of(second[i]) - confidence_of(first[i]);
    }
  }
  std::vector<char> replaced(gains.size());
  for (std::size_t i = 0; i < gains.size(); ++i) {
    replaced[i] = static_cast<char>(prefers_second(gains[i], found.components[i].area));
    summary.replaced += static_cast<int>(replaced[i]);
  }
  summary.regions += static_cast<int>(gains.size());
  for (const Run& run : found.runs) {
    if (replaced[static_cast<std::size_t>(run.component)] == 0) continue;
    const auto begin = static_cast<std::ptrdiff_t>(at(run)) + run.begin;
    std::copy_n(second.begin() + begin, run.end - run.begin, first.begin() + begin);
  }
}

}  // namespace

FusionSummary fuse_outputs(std::span<float> first, std::span<const float> second, int width,
                           int height, ThreadPool& pool) {
  const std::size_t size = first.size();
  const auto w = static_cast<std::size_t>(width);
  const int radius = edge_radius(width, height);
  const auto cores = make_large_array<std::uint8_t>(size);
  const std::span<std::uint8_t> core{cores.get(), size};
  const auto by_rows = [&](auto&& each) {
    pool.parallel_for(static_cast<std::size_t>(height), kGrain,
                      [&](std::size_t begin, std::size_t end) {
                        for (std::size_t i = begin * w; i < end * w; ++i) each(i);
                      });
  };
  by_rows([&](std::size_t i) { core[i] = difference(first[i], second[i]); });
  apply_morphology<Erosion>(core, width, height, radius, pool);
  apply_morphology<Dilation>(core, width, height, dilation_radius(radius), pool);

  const auto planes = make_large_array<float>(size);
  const std::span<float> region{planes.get(), size};
  by_rows([&](std::size_t i) { region[i] = as_value(core[i] & difference(first[i], second[i])); });
  FusionSummary summary;
  for (const Difference each : kDifferences) {
    const float value = as_value(each);
    select_regions(first, second,
                   find_components(region, width, {0, 0, width, height}, value, value,
                                   Neighbours::kEight, pool),
                   width, summary);
  }
  return summary;
}

FusionSummary fuse_outputs_scalar(std::span<float> first, std::span<const float> second, int width,
                                  int height) {
  const int radius = edge_radius(width, height);
  const auto at = [width](int x, int y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  };
  /// Calls `visit` for all network pixels at most `distance` rows and columns away.
  const auto around = [&](int x, int y, int distance, auto&& visit) {
    for (int ny = std::max(0, y - distance); ny <= std::min(height - 1, y + distance); ++ny) {
      for (int nx = std::max(0, x - distance); nx <= std::min(width - 1, x + distance); ++nx) {
        visit(nx, ny);
      }
    }
  };
  const std::vector<float> before(first.begin(), first.end());
  FusionSummary summary;
  for (const Difference each : kDifferences) {
    const auto differs = [&](int x, int y) {
      return difference(before[at(x, y)], second[at(x, y)]) == each;
    };
    std::vector<char> inside(first.size(), 0);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        bool wide = true;
        around(x, y, radius, [&](int nx, int ny) { wide = wide && differs(nx, ny); });
        if (!wide) continue;
        around(x, y, dilation_radius(radius), [&](int nx, int ny) {
          if (differs(nx, ny)) inside[at(nx, ny)] = 1;
        });
      }
    }
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        if (inside[at(x, y)] == 0) continue;
        std::vector<std::array<int, 2>> region{{x, y}};
        inside[at(x, y)] = 0;
        std::int64_t gain = 0;
        for (std::size_t i = 0; i < region.size(); ++i) {
          const auto [rx, ry] = region[i];
          gain += confidence_of(second[at(rx, ry)]) - confidence_of(before[at(rx, ry)]);
          around(rx, ry, 1, [&](int nx, int ny) {
            if (inside[at(nx, ny)] == 0) return;
            inside[at(nx, ny)] = 0;
            region.push_back({nx, ny});
          });
        }
        ++summary.regions;
        if (!prefers_second(gain, static_cast<int>(region.size()))) continue;
        ++summary.replaced;
        for (const auto& [rx, ry] : region) first[at(rx, ry)] = second[at(rx, ry)];
      }
    }
  }
  return summary;
}

}  // namespace cutout
