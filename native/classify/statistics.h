#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/image_view.h"

namespace cutout {

/// What a picture looks like as a whole, without knowing what it shows: every number in 0..1. A
/// drawing has few, flat colours; a product often lies on one; a cut-out brings its own alpha.
enum class Statistic : std::size_t {
  kTransparent,    // share of the source's pixels with alpha 0
  kSoft,           // with alpha 1..254
  kFlat,           // pixels that differ from both the right and the lower one by at most 2 in all
  kTexture,        // by 6 to 60
  kEdge,           // by more than 96
  kColour1,        // share of the commonest of 4096 colours
  kColour4,        // of the four commonest
  kColour16,       // of the sixteen commonest
  kEntropy,        // of the 4096 colours, in shares of its maximum
  kSaturation,     // mean of (max - min) / 255
  kSaturated,      // share with max - min > 100
  kGray,           // share with max - min < 6
  kBorderUniform,  // share of the outermost 2 % within 16 of its median in every channel
  kBorderLight,    // smallest channel of that median
  kBorderDark,     // 1 - its largest channel
  kBackground,     // share of the whole picture within 16 of that median
  kLightness,      // mean of the luma
  kContrast,       // standard deviation of the luma, in shares of 128
  kCount,
};

using Statistics = std::array<float, static_cast<std::size_t>(Statistic::kCount)>;

/// Shares of transparent and of soft pixels: kTransparent and kSoft.
///
/// | limit   |                                                                              |
/// |---------|------------------------------------------------------------------------------|
/// | layout  | straight RGBA8, any stride, at least 1 x 1                                   |
/// | sample  | at most 512 x 512 pixels, evenly spread, of pictures that are larger         |
/// | threads | the calling one                                                              |
void alpha_statistics(ConstImageView rgba, Statistics& statistics);

/// All others, from the planes R, G, B (values 0..255, `side` x `side`) that the detector reads.
///
/// | limit   |                                                                              |
/// |---------|------------------------------------------------------------------------------|
/// | side    | at least 8                                                                   |
/// | scratch | 4096 counts; 3 x 256 counts                                                  |
/// | threads | the calling one; sums are of whole numbers, so the order does not matter     |
/// | agreement | within 1e-5 of the scalar version                                          |
void colour_statistics(std::span<const float> planes, int side, Statistics& statistics);

/// The definition, pixel by pixel in double precision.
void colour_statistics_scalar(std::span<const float> planes, int side, Statistics& statistics);

}  // namespace cutout
