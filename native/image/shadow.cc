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
  for (int x = 0; x < n; ++x) out[x] = (a[x] + (b[x] - a[x]) * t) * scale;
}

}  // namespace

ShadowPlane::ShadowPlane(ConstImageView canvas, const Box& subject, const DropShadow& shadow,
                         ThreadPool& pool)
    : shadow_(shadow), fade_end_(canvas.height) {
  const auto sigma = static_cast<double>(shadow.sigma);
  const int radius = static_cast<int>(std::ceil(kRadius * sigma));
  box_ = clip({subject.left + shadow.offset_x - radius, subject.top + shadow.offset_y - radius,
               subject.width + 2 * radius, subject.height + 2 * radius},
              canvas);
  if (subject.top + subject.height != canvas.height) shadow_.fade = 0;
  while (block_ < kLargestBlock && sigma / (2 * block_) >= kBlocksPerSigma) block_ *= 2;
  // One block more than the radius on each side, so that interpolation stays inside the plane.
  const int border = (radius / block_ + 2) * block_;
  plane_ = {subject.left - border, subject.top - border,
            (subject.width + 2 * border + block_ - 1) / block_,
            (subject.height + 2 * border + block_ - 1) / block_};
  blocks_.assign(static_cast<std::size_t>(plane_.width) * static_cast<std::size_t>(plane_.height),
                 0.0F);
  reduce(canvas, subject, pool);
  // In blocks: the mean over a block has variance 1/12, linear interpolation 1/6.
  const double added = block_ == 1 ? 0 : 0.25;
  blur(gaussian(std::sqrt(sigma * sigma / (block_ * block_) - added)), pool);
}

void ShadowPlane::reduce(ConstImageView canvas, const Box& subject, ThreadPool& pool) {
  const int block = block_;
  const int width = plane_.width;
  const int border = subject.left - plane_.left;  // a multiple of the block
  const int rows = (subject.height + block - 1) / block;
  const float scale = 1.0F / (255.0F * static_cast<float>(block) * static_cast<float>(block));
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

void ShadowPlane::blur(const std::vector<float>& weights, ThreadPool& pool) {
  const auto taps = static_cast<int>(weights.size());
  const int radius = taps / 2;
  const int columns = plane_.width;
  const auto width = static_cast<std::size_t>(columns);
  const auto rows = static_cast<std::size_t>(plane_.height);
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
  pool.for_each(rows, kGrain, [&](std::size_t y) {
    float* to = blocks_.data() + y * width;
    std::fill_n(to, width, 0.0F);
    for (int k = 0; k < taps; ++k) {
      const int from = static_cast<int>(y) + k - radius;
      if (from < 0 || from >= plane_.height) continue;
      add_scaled(across.data() + static_cast<std::size_t>(from) * width,
                 weights[static_cast<std::size_t>(k)], columns, to);
    }
  });
}

void ShadowPlane::row(int y, float* out) const {
  // Centre of the pixel in blocks, from the centre of the first block: always inside the plane.
  const float v =
      (static_cast<float>(y - shadow_.offset_y - plane_.top) + 0.5F) / static_cast<float>(block_) -
      0.5F;
  const int above = static_cast<int>(v);
  const float t = block_ == 1 ? 0.0F : v - static_cast<float>(above);
  const float scale = shadow_.opacity * fade_at(y, fade_end_, shadow_.fade);
  const float* a =
      blocks_.data() + static_cast<std::size_t>(above) * static_cast<std::size_t>(plane_.width);
  const int from = box_.left - shadow_.offset_x - plane_.left;  // from the plane's left end
  if (block_ == 1) {
    mix(a + from, a + from, 0, scale, box_.width, out);
    return;
  }
  std::vector<float> line(static_cast<std::size_t>(plane_.width));
  mix(a, a + plane_.width, t, scale, plane_.width, line.data());
  // Between two centres lie block_ pixels, the first of them half a pixel behind the left one.
  const float step = 1.0F / static_cast<float>(block_);
  for (int x = 0; x < box_.width;) {
    const int at = from + x - block_ / 2;
    const int phase = at % block_;
    const int n = std::min(block_ - phase, box_.width - x);
    const float left = line[static_cast<std::size_t>(at / block_)];
    const float rise = (line[static_cast<std::size_t>(at / block_) + 1] - left) * step;
    for (int i = 0; i < n; ++i) out[x + i] = left + rise * (static_cast<float>(phase + i) + 0.5F);
    x += n;
  }
}

}  // namespace cutout
