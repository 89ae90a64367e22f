#include "pipeline/edge_runs.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "cuda/kernel.h"

namespace cutout {

namespace {

using cuda::EdgeRuns;

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kRunBytes = EdgeRuns::kRun * sizeof(std::uint32_t);
constexpr std::size_t kStates = kAlignment;  // where they begin
constexpr std::size_t kCount = kStates - sizeof(std::uint32_t);
static_assert(sizeof(cuda::AlphaSummary) <= kCount);

constexpr std::size_t kWrittenRows = 16;  // that a thread writes at a time

std::size_t states_of(int width, int height) {
  return static_cast<std::size_t>(cuda::ceil_div(width, EdgeRuns::kRun)) *
         static_cast<std::size_t>(height);
}

}  // namespace

EdgeRunsBlock::EdgeRunsBlock(int width, int height)
    : width_(width),
      height_(height),
      bytes_(4 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height) / 3),
      pixels_((kStates + states_of(width, height) * sizeof(std::uint32_t) + kAlignment - 1) /
              kAlignment * kAlignment) {
  if (bytes_ > pixels_) capacity_ = static_cast<std::uint32_t>((bytes_ - pixels_) / kRunBytes);
}

EdgeRuns EdgeRunsBlock::runs(std::byte* block) const {
  const auto at = [block](std::size_t place) {
    return reinterpret_cast<std::uint32_t*>(block + place);
  };
  return {at(kCount), at(kStates), at(pixels_), capacity_};
}

bool EdgeRunsBlock::write(std::byte* block, ImageView pixels, HiddenColour hidden,
                          ThreadPool& pool) const {
  const EdgeRuns given = runs(block);
  const std::span states(given.states, states_of(width_, height_));
  const std::uint32_t end = EdgeRuns::kFirst + *given.count;
  if (*given.count > capacity_ ||
      std::ranges::any_of(states, [end](std::uint32_t state) { return state >= end; }))
    return false;
  const auto write_row = [&](int y) {
    const std::uint32_t* state = states.data() + states_of(width_, y);
    for (int x = 0; x < width_; x += EdgeRuns::kRun, ++state) {
      if (*state == EdgeRuns::kOpaque) continue;
      const int n = std::min(EdgeRuns::kRun, width_ - x);
      std::uint8_t* const to = pixels.row(y) + 4 * static_cast<std::ptrdiff_t>(x);
      if (*state == EdgeRuns::kTransparent) {
        clear_alpha(to, n, hidden);
      } else {
        std::memcpy(to, block + pixels_ + (*state - EdgeRuns::kFirst) * kRunBytes,
                    4 * static_cast<std::size_t>(n));
      }
    }
  };
  pool.parallel_for(static_cast<std::size_t>(height_), kWrittenRows,
                    [&](std::size_t begin, std::size_t last) {
                      for (std::size_t y = begin; y < last; ++y) write_row(static_cast<int>(y));
                    });
  return true;
}

}  // namespace cutout
