#pragma once

#include <cstdint>

namespace cutout {

/// Lays straight pixels over a black shadow over a background, in sRGB values, in place. The shadow
/// itself is computed in image/shadow.h.
///
///   | below | = shadow + background.a (1 - shadow)                                          |
///   | alpha | = pixel.a + below (1 - pixel.a)                                               |
///   | rgb   | = (pixel.rgb pixel.a + background.rgb background.a (1 - shadow) (1 - pixel.a)) |
///   |       | / alpha                                                                       |
///
/// A pixel of alpha 255 is unchanged, and so is any pixel without background and shadow, colours
/// under alpha 0 included.
///
/// `pixels`, `background`: n RGBA words, alpha in the top byte; a background word 0 is no
/// background. `shadow`: n strengths 0..1. The arrays do not overlap. Computed in single precision
/// and rounded.
void lay_over(std::uint32_t* pixels, const std::uint32_t* background, const float* shadow, int n);

}  // namespace cutout
