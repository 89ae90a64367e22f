#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// The detector's input at half its size, in bytes: what the statistics are computed from.
struct Thumbnail {
  int side = 0;
  std::vector<std::uint8_t> planes;  // R, G, B, each side x side

  [[nodiscard]] const std::uint8_t* row(std::size_t channel, int y) const {
    const auto n = static_cast<std::size_t>(side);
    return planes.data() + (channel * n + static_cast<std::size_t>(y)) * n;
  }
};

/// Rounded means of 2 x 2 values of the planes R, G, B (`side` x `side`, values clamped to 0..255);
/// an odd last row and column are left out.
///
/// | limit   |                 |
/// |---------|-----------------|
/// | side    | at least 8      |
/// | threads | the calling one |
Thumbnail make_thumbnail(std::span<const float> planes, int side);

/// Statistics of the whole image, each in 0..1.
enum class Statistic : std::size_t {
  kTransparent,    // share of the source's pixels with alpha 0
  kSoft,           // with alpha 1..254
  kBorderUniform,  // share of the outermost 2 % within 16 of its median in every channel
  kBorderLight,    // smallest channel of that median
  kBorderDark,     // 1 - its largest channel
  kBackground,     // share of the whole image within 16 of that median
  kCount,
};

using Statistics = std::array<float, static_cast<std::size_t>(Statistic::kCount)>;

/// Statistics of a region, each in 0..1. A pixel's step is the greater of its differences from the
/// right and from the lower pixel, summed over the channels; its chroma is its largest channel
/// minus its smallest.
enum class RegionStatistic : std::size_t {
  kFlat,        // share with a step of at most 2
  kSmooth,      // at most 6
  kTexture,     // 6 to 60
  kEdge,        // more than 96
  kSharp,       // more than 200
  kColour1,     // share of the commonest of 4096 colours
  kColour4,     // of the four commonest
  kColour16,    // of the sixteen commonest
  kEntropy,     // of the 4096 colours, relative to its maximum
  kSaturation,  // mean chroma / 255
  kSaturated,   // share with a chroma of more than 100
  kGray,        // of less than 6
  kLightness,   // mean of the luma / 255
  kContrast,    // standard deviation of the luma / 128
  kRed,         // mean of the chroma / 255 of pixels with a hue within 30 degrees of red
  kYellow,      // of yellow, and so on
  kGreen,
  kCyan,
  kBlue,
  kMagenta,
  kCount,
};

using RegionStatistics = std::array<float, static_cast<std::size_t>(RegionStatistic::kCount)>;

/// Statistics of the subject and of the rest.
struct Regions {
  RegionStatistics inside{};
  RegionStatistics outside{};
};

/// Computes kTransparent and kSoft.
///
/// | limit   |                                                                              |
/// |---------|------------------------------------------------------------------------------|
/// | layout  | straight RGBA8, any stride, at least 1 x 1                                   |
/// | sample  | at most 512 x 512 pixels, evenly spread                                      |
/// | threads | the calling one                                                              |
void alpha_statistics(ConstImageView rgba, Statistics& statistics);

/// Computes the other Statistics.
///
/// | limit   |                                                                      |
/// |---------|----------------------------------------------------------------------|
/// | scratch | 3 x 256 counts                                                       |
/// | threads | the calling one                                                      |
/// | exact   | equal to the scalar version                                          |
void border_statistics(const Thumbnail& thumbnail, Statistics& statistics);

/// Statistics inside and outside a matte. A pixel counts with its weight inside and with the rest
/// outside; `weights` are side x side numbers in 0..1, rounded to steps of 1 / 255. A region of
/// less than 1 / 2048 of the image has the statistics of the whole image.
///
/// | limit     |                                                                      |
/// |-----------|----------------------------------------------------------------------|
/// | side      | 4 to 4096                                                            |
/// | scratch   | a thread: 2 x 4096 counts, a row of weights                          |
/// | threads   | the pool; integer sums: same bits for any number of threads          |
/// | agreement | within 1e-5 of the scalar version                                    |
Regions region_statistics(const Thumbnail& thumbnail, std::span<const float> weights,
                          ThreadPool& pool);

}  // namespace cutout
