#include "matte/summary.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cutout {

namespace {

constexpr std::size_t kGrain = 64;

}  // namespace

void Summary::add(const AlphaRun& run, const std::uint8_t* rgba, int x, int n, int y) {
  foreground += run.foreground;
  opaque = opaque && run.all == 255;
  if (run.any == 0) return;
  top = std::min(top, y);
  bottom = std::max(bottom, y);
  // Only pixels that could widen the box are read again.
  for (int i = 0; i < n && x + i < left; ++i) {
    if (rgba[i * 4 + 3] != 0) left = x + i;
  }
  for (int i = n - 1; i >= 0 && x + i > right; --i) {
    if (rgba[i * 4 + 3] != 0) right = x + i;
  }
}

void Summary::add(const Summary& other) {
  left = std::min(left, other.left);
  top = std::min(top, other.top);
  right = std::max(right, other.right);
  bottom = std::max(bottom, other.bottom);
  foreground += other.foreground;
  opaque = opaque && other.opaque;
}

MatteSummary Summary::result() const {
  MatteSummary result{{}, foreground, opaque};
  if (right >= 0) result.box = {left, top, right - left + 1, bottom - top + 1};
  return result;
}

MatteSummary summarise_alpha(ConstImageView rgba, const Box& region, ThreadPool& pool) {
  const auto rows = static_cast<std::size_t>(std::max(region.height, 0));
  std::vector<Summary> parts((rows + kGrain - 1) / kGrain);
  pool.for_each(rows, kGrain, [&](std::size_t row) {
    const int y = region.top + static_cast<int>(row);
    const std::uint8_t* at = rgba.row(y) + static_cast<std::ptrdiff_t>(region.left) * 4;
    parts[row / kGrain].add(scan_alpha(at, region.width), at, region.left, region.width, y);
  });
  Summary whole;
  for (const Summary& part : parts) whole.add(part);
  return whole.result();
}

}  // namespace cutout
