#pragma once

namespace cutout {

/// Squared distance of a colour from the line F-B that counts as noise: one that far away is
/// believed by half.
inline constexpr float kNoise = 3e-3F;

}  // namespace cutout
