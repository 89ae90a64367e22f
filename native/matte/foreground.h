#pragma once

namespace cutout {

/// A network pixel with at least this probability belongs to the foreground (docs/matting.md).
inline constexpr float kForegroundThreshold = 0.5F;

}  // namespace cutout
