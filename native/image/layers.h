#pragma once

#include <cstdint>

namespace cutout {

/// Lays straight pixels over a black shadow over a background, in sRGB values, in place.
///
///   below = shadow + background.a (1 - shadow)                     alpha of what lies under the
///   pixel alpha = pixel.a + below (1 - pixel.a) rgb   = (pixel.rgb pixel.a + background.rgb
///   background.a (1 - shadow) (1 - pixel.a)) / alpha
///
/// A pixel of alpha 255 keeps every value, and so does any pixel without background and shadow:
/// colours under alpha 0 stay as they are where nothing is drawn behind them.
///
/// `pixels`, `background`: n RGBA words, alpha in the top byte; a background word 0 is no
/// background. `shadow`: n strengths 0..1. The arrays do not overlap. Rounded to the nearest in
/// single precision.
void lay_over(std::uint32_t* pixels, const std::uint32_t* background, const float* shadow, int n);

}  // namespace cutout
