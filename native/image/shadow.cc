#include "image/shadow.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr double kRadius = 3;          // of the Gaussian, in sigmas
constexpr double kBlocksPerSigma = 3;  // at least
constexpr int kLargestBlock = 256;
constexpr std::size_t kGrain = 8;  // rows of blocks

typedef std::uint32_t Pixel __attribute__((aligned(1), may_alias));

int radius_of(const DropShadow& shadow) {
  return static_cast<int>(std::ceil(kRadius * static_cast<double>(shadow.sigma)));
}

Box shadow_box(const Box& subject, const DropShadow& shadow) {
  const int radius = radius_of(shadow);
  return {subject.left + shadow.offset_x - radius, subject.top + shadow.offset_y - radius,
          subject.width + 2 * radius, subject.height + 2 * radius};
}

/// Whether the shadow fades: it is asked for, and the canvas's lower border cuts the subject.
bool fades(const Box& subject, int canvas_height, const DropShadow& shadow) {
  return shadow.fade > 0 && subject.top + subject.height == canvas_height;
}

/// Weights of a Gaussian at -radius..radius, sum 1.
std::vector<float> gaussian(double sigma) {
  const int radius = static_cast<int>(std::ceil(kRadius * sigma));
  std::vector<double> weights;
  double sum = 0;
  for (int k = -radius; k <= radius; ++k) {
    weights.push_back(std::exp(-0.5 * k * k / (sigma * sigma)));
    sum += weights.back();
  }
  std::vector<float> result;
  for (const double weight : weights) result.push_back(static_cast<float>(weight / sum));
  return result;
}

CUTOUT_SIMD void add_alpha(const Pixel* __restrict pixels, int n, std::uint32_t* __restrict sums) {
  for (int x = 0; x < n; ++x) sums[x] += pixels[x] >> 24;
}

CUTOUT_SIMD void add_scaled(const float* __restrict from, float weight, int n,
                            float* __restrict to) {
  for (int x = 0; x < n; ++x) to[x] += weight * from[x];
}

CUTOUT_SIMD void mix(const float* __restrict a, const float* __restrict b, float t, float scale,
                     int n, float* __restrict out) {
  for (int x = 0; x < n; ++x) out[x] = mixed(a[x], b[x], t, scale);
}

}  // namespace

ShadowLayout shadow_layout(ConstImageView canvas, const Box& subject, const DropShadow& shadow) {
  ShadowLayout layout;
  layout.box = clip(shadow_box(subject, shadow), canvas);
  ShadowGrid& grid = layout.grid;
  const auto sigma = static_cast<double>(shadow.sigma);
  while (grid.block < kLargestBlock && sigma / (2 * grid.block) >= kBlocksPerSigma) grid.block *= 2;
  // One block more than the radius on each side, so that interpolation stays inside the plane.
  const int border = (radius_of(shadow) / grid.block + 2) * grid.block;
  grid.left = subject.left - border;
  grid.top = subject.top - border;
  grid.width = (subject.width + 2 * border + grid.block - 1) / grid.block;
  grid.height = (subject.height + 2 * border + grid.block - 1) / grid.block;
  grid.offset_x = shadow.offset_x;
  grid.offset_y = shadow.offset_y;
  grid.fade_end = canvas.height;
  grid.fade = fades(subject, canvas.height, shadow) ? shadow.fade : 0;
  grid.opacity = shadow.opacity;
  // In blocks: the mean over a block has variance 1/12, linear interpolation 1/6.
  const double added = grid.block == 1 ? 0 : 0.25;
  layout.blur = gaussian(std::sqrt(sigma * sigma / (grid.block * grid.block) - added));
  return layout;
}

ShadowPlane::ShadowPlane(ConstImageView canvas, const Box& subject, const DropShadow& shadow,
                         ThreadPool& pool)
    : layout_(shadow_layout(canvas, subject, shadow)) {
  const ShadowGrid& grid = layout_.grid;
  blocks_.assign(static_cast<std::size_t>(grid.width) * static_cast<std::size_t>(grid.height),
                 0.0F);
  reduce(canvas, subject, pool);
  blur(pool);
}

void ShadowPlane::reduce(ConstImageView canvas, const Box& subject, ThreadPool& pool) {
  const int block = layout_.grid.block;
  const int width = layout_.grid.width;
  const int border = subject.left - layout_.grid.left;  // a multiple of the block
  const int rows = (subject.height + block - 1) / block;
  const float scale = block_scale(block);
  pool.parallel_for(
      static_cast<std::size_t>(rows), kGrain, [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> sums(static_cast<std::size_t>(subject.width));
        for (std::size_t j = begin; j < end; ++j) {
          std::fill(sums.begin(), sums.end(), 0U);
          const int first = subject.top + static_cast<int>(j) * block;
          const int last = std::min(first + block, subject.top + subject.height);
          for (int y = first; y < last; ++y) {
            add_alpha(reinterpret_cast<const Pixel*>(canvas.row(y)) + subject.left, subject.width,
                      sums.data());
          }
          float* to =
              blocks_.data() +
              (j + static_cast<std::size_t>(border / block)) * static_cast<std::size_t>(width) +
              border / block;
          for (int x = 0; x < subject.width; x += block) {
            std::uint32_t sum = 0;
            const int stop = std::min(x + block, subject.width);
            for (int i = x; i < stop; ++i) sum += sums[static_cast<std::size_t>(i)];
            *to++ = static_cast<float>(sum) * scale;
          }
        }
      });
}

void ShadowPlane::blur(ThreadPool& pool) {
  const std::vector<float>& weights = layout_.blur;
  const auto taps = static_cast<int>(weights.size());
  const int radius = taps / 2;
  const int columns = layout_.grid.width;
  const auto width = static_cast<std::size_t>(columns);
  const auto rows = static_cast<std::size_t>(layout_.grid.height);
  std::vector<float> across(blocks_.size(), 0.0F);
  pool.parallel_for(rows, kGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<float> padded(width + static_cast<std::size_t>(2 * radius), 0.0F);
    for (std::size_t y = begin; y < end; ++y) {
      const float* from = blocks_.data() + y * width;
      std::copy(from, from + width, padded.begin() + radius);
      for (int k = 0; k < taps; ++k) {
        add_scaled(padded.data() + k, weights[static_cast<std::size_t>(k)], columns,
                   across.data() + y * width);
      }
    }
  });
  pool.parallel_for(rows, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t y = begin; y < end; ++y) {
      float* to = blocks_.data() + y * width;
      std::fill_n(to, width, 0.0F);
      for (int k = 0; k < taps; ++k) {
        const int from = static_cast<int>(y) + k - radius;
        if (from < 0 || from >= layout_.grid.height) continue;
        add_scaled(across.data() + static_cast<std::size_t>(from) * width,
                   weights[static_cast<std::size_t>(k)], columns, to);
      }
    }
  });
}

void ShadowPlane::row(int y, float* out) const {
  const ShadowGrid& grid = layout_.grid;
  const Box& box = layout_.box;
  const ShadowRow row = shadow_row(grid, y);
  const float* a =
      blocks_.data() + static_cast<std::size_t>(row.above) * static_cast<std::size_t>(grid.width);
  const int from = box.left - grid.offset_x - grid.left;  // first pixel, from the plane's left end
  if (grid.block == 1) {
    mix(a + from, a + from, 0, row.scale, box.width, out);
    return;
  }
  std::vector<float> line(static_cast<std::size_t>(grid.width));
  mix(a, a + grid.width, row.t, row.scale, grid.width, line.data());
  // Between two centres lie grid.block pixels, the first of them half a pixel behind the left one.
  const int half = grid.block / 2;
  const float step = 1.0F / static_cast<float>(grid.block);
  for (int x = 0; x < box.width;) {
    const int at = from + x - half;
    const int block = at / grid.block;
    const int phase = at % grid.block;
    const int n = std::min(grid.block - phase, box.width - x);
    const float left = line[static_cast<std::size_t>(block)];
    const float right = line[static_cast<std::size_t>(block) + 1];
    for (int i = 0; i < n; ++i) out[x + i] = between_blocks(left, right, step, phase + i);
    x += n;
  }
}

}  // namespace cutout
