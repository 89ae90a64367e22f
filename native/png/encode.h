#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

struct PngOptions {
  bool alpha_only = false;                                       // 8-bit gray of the alpha channel
  int effort = 3;                                                // 1 fastest .. 9 smallest
  std::vector<std::uint8_t> icc;                                 // profile for iCCP; empty: none
  std::optional<std::array<std::uint32_t, 2>> pixels_per_metre;  // pHYs, horizontal then vertical
};

/// Writes straight RGBA8 as a non-interlaced 8-bit PNG, colour type 6, or 0 with `alpha_only`.
/// Chunks: IHDR, [iCCP], [pHYs], IDAT..., IEND and no others (docs/contract.md 7.5). The bytes do
/// not depend on the pool's threads.
///
/// | limit             |                                                                          |
/// |-------------------|--------------------------------------------------------------------------|
/// | width, height     | 1 .. 2^31 - 1, a row of at most 2^28 pixels                              |
/// | rgba              | any stride; may be larger than 4 GiB                                     |
/// | effort            | 1 .. 9                                                                   |
/// | icc               | at most 2^26 bytes                                                       |
/// | largest file      | pixels and a byte a row, + 0.1 %, + 400 bytes, + the profile             |
/// | memory            | the file, + about 1.5 MB (or six of its rows) a thread                   |
/// | threads           | reentrant; strips of rows run on `pool` and in the caller                |
/// | errors            | Stopped, by the pool of a job that ended                                  |
std::vector<std::uint8_t> encode_png(ConstImageView rgba, const PngOptions& options,
                                     ThreadPool& pool);

}  // namespace cutout
