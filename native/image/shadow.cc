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

Box join(const Box& a, const Box& b) {
  const int left = std::min(a.left, b.left);
  const int top = std::min(a.top, b.top);
  return {left, top, std::max(a.left + a.width, b.left + b.width) - left,
          std::max(a.top + a.height, b.top + b.height) - top};
}

float fade_at(int y, int end, int rows) {
  if (rows == 0) return 1;
  return std::clamp((static_cast<float>(end - y) - 0.5F) / static_cast<float>(rows), 0.0F, 1.0F);
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
  for (int x = 0; x < n; ++x) out[x] = (a[x] + (b[x] - a[x]) * t) * scale;
}

}  // namespace

Box shadow_extent(const Box& subject, const DropShadow& shadow) {
  return join(subject, shadow_box(subject, shadow));
}

ShadowPlane::ShadowPlane(ConstImageView canvas, const Box& subject, const DropShadow& shadow,
                         ThreadPool& pool)
    : box_(clip(shadow_box(subject, shadow), canvas)),
      offset_x_(shadow.offset_x),
      offset_y_(shadow.offset_y),
      fade_end_(canvas.height),
      fade_(fades(subject, canvas.height, shadow) ? shadow.fade : 0),
      opacity_(shadow.opacity) {
  const auto sigma = static_cast<double>(shadow.sigma);
  while (block_ < kLargestBlock && sigma / (2 * block_) >= kBlocksPerSigma) block_ *= 2;
  // One block more than the radius on each side, so that interpolation stays inside the plane.
  const int border = (radius_of(shadow) / block_ + 2) * block_;
  left_ = subject.left - border;
  top_ = subject.top - border;
  width_ = (subject.width + 2 * border + block_ - 1) / block_;
  height_ = (subject.height + 2 * border + block_ - 1) / block_;
  blocks_.assign(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_), 0.0F);
  reduce(canvas, subject, pool);
  // In blocks: the mean over a block has variance 1/12, linear interpolation 1/6.
  const double added = block_ == 1 ? 0 : 0.25;
  blur(std::sqrt(sigma * sigma / (block_ * block_) - added), pool);
}

void ShadowPlane::reduce(ConstImageView canvas, const Box& subject, ThreadPool& pool) {
  const int border = subject.left - left_;  // a multiple of the block
  const int rows = (subject.height + block_ - 1) / block_;
  const float scale = 1.0F / (255.0F * static_cast<float>(block_) * static_cast<float>(block_));
  pool.parallel_for(
      static_cast<std::size_t>(rows), kGrain, [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> sums(static_cast<std::size_t>(subject.width));
        for (std::size_t j = begin; j < end; ++j) {
          std::fill(sums.begin(), sums.end(), 0U);
          const int first = subject.top + static_cast<int>(j) * block_;
          const int last = std::min(first + block_, subject.top + subject.height);
          for (int y = first; y < last; ++y) {
            add_alpha(reinterpret_cast<const Pixel*>(canvas.row(y)) + subject.left, subject.width,
                      sums.data());
          }
          float* to =
              blocks_.data() +
              (j + static_cast<std::size_t>(border / block_)) * static_cast<std::size_t>(width_) +
              border / block_;
          for (int x = 0; x < subject.width; x += block_) {
            std::uint32_t sum = 0;
            const int stop = std::min(x + block_, subject.width);
            for (int i = x; i < stop; ++i) sum += sums[static_cast<std::size_t>(i)];
            *to++ = static_cast<float>(sum) * scale;
          }
        }
      });
}

void ShadowPlane::blur(double sigma, ThreadPool& pool) {
  const std::vector<float> weights = gaussian(sigma);
  const auto taps = static_cast<int>(weights.size());
  const int radius = taps / 2;
  const auto width = static_cast<std::size_t>(width_);
  const auto rows = static_cast<std::size_t>(height_);
  std::vector<float> across(blocks_.size(), 0.0F);
  pool.parallel_for(rows, kGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<float> padded(width + static_cast<std::size_t>(2 * radius), 0.0F);
    for (std::size_t y = begin; y < end; ++y) {
      const float* from = blocks_.data() + y * width;
      std::copy(from, from + width, padded.begin() + radius);
      for (int k = 0; k < taps; ++k) {
        add_scaled(padded.data() + k, weights[static_cast<std::size_t>(k)], width_,
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
        if (from < 0 || from >= height_) continue;
        add_scaled(across.data() + static_cast<std::size_t>(from) * width,
                   weights[static_cast<std::size_t>(k)], width_, to);
      }
    }
  });
}

void ShadowPlane::row(int y, float* out) const {
  const float scale = opacity_ * fade_at(y, fade_end_, fade_);
  // Centre of the pixel in blocks, from the centre of the first block: always inside the plane.
  const float v =
      (static_cast<float>(y - offset_y_ - top_) + 0.5F) / static_cast<float>(block_) - 0.5F;
  const int above = static_cast<int>(v);
  const float* a =
      blocks_.data() + static_cast<std::size_t>(above) * static_cast<std::size_t>(width_);
  const int from = box_.left - offset_x_ - left_;  // first pixel, from the left end of the plane
  if (block_ == 1) {
    mix(a + from, a + from, 0, scale, box_.width, out);
    return;
  }
  std::vector<float> line(static_cast<std::size_t>(width_));
  mix(a, a + width_, v - static_cast<float>(above), scale, width_, line.data());
  // Between two centres lie block_ pixels, the first of them half a pixel behind the left centre.
  const int half = block_ / 2;
  const float step = 1.0F / static_cast<float>(block_);
  for (int x = 0; x < box_.width;) {
    const int at = from + x - half;
    const int block = at / block_;
    const int phase = at % block_;
    const int n = std::min(block_ - phase, box_.width - x);
    const float left = line[static_cast<std::size_t>(block)];
    const float rise = (line[static_cast<std::size_t>(block) + 1] - left) * step;
    for (int i = 0; i < n; ++i) out[x + i] = left + rise * (static_cast<float>(phase + i) + 0.5F);
    x += n;
  }
}

std::vector<float> shadow_scalar(ConstImageView canvas, const Box& subject,
                                 const DropShadow& shadow) {
  const auto width = static_cast<std::size_t>(canvas.width);
  const Box box = clip(shadow_box(subject, shadow), canvas);
  const int rows = fades(subject, canvas.height, shadow) ? shadow.fade : 0;
  const auto sigma = static_cast<double>(shadow.sigma);
  // Weight of a pixel at a distance, normalised over all pixels within the radius.
  const int radius = static_cast<int>(std::ceil(5 * sigma));
  const auto weight = [&](int distance) {
    return std::exp(-0.5 * distance * distance / (sigma * sigma));
  };
  double sum = 0;
  for (int k = -radius; k <= radius; ++k) sum += weight(k);
  std::vector<double> across(width * static_cast<std::size_t>(canvas.height), 0.0);
  for (int y = subject.top; y < subject.top + subject.height; ++y) {
    for (int x = box.left; x < box.left + box.width; ++x) {
      double& to = across[static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x)];
      for (int i = subject.left; i < subject.left + subject.width; ++i) {
        const int distance = x - shadow.offset_x - i;
        if (std::abs(distance) <= radius)
          to += canvas.row(y)[i * 4 + 3] / 255.0 * weight(distance) / sum;
      }
    }
  }
  std::vector<float> result(across.size(), 0.0F);
  for (int y = box.top; y < box.top + box.height; ++y) {
    for (int x = box.left; x < box.left + box.width; ++x) {
      double strength = 0;
      for (int j = subject.top; j < subject.top + subject.height; ++j) {
        const int distance = y - shadow.offset_y - j;
        if (std::abs(distance) > radius) continue;
        strength += across[static_cast<std::size_t>(j) * width + static_cast<std::size_t>(x)] *
                    weight(distance) / sum;
      }
      result[static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x)] =
          static_cast<float>(strength) * shadow.opacity * fade_at(y, canvas.height, rows);
    }
  }
  return result;
}

}  // namespace cutout
