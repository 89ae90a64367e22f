#include "pipeline/compose.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/scan.h"
#include "image/layers.h"
#include "image/place.h"
#include "matte/summary.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 32;  // rows of the canvas
constexpr int kSegment = 256;

std::uint32_t word_of(const std::array<std::uint8_t, 4>& colour) {
  std::uint32_t word;
  std::memcpy(&word, colour.data(), sizeof word);
  return word;
}

/// Lays `area` of the canvas over shadow and background; returns whether all its pixels have alpha
/// 255.
bool lay_layers(ImageView canvas, const ComposePlan& plan, const ShadowPlane* shadow,
                const Box& area, ThreadPool& pool) {
  std::atomic<bool> opaque{true};
  pool.parallel_for(static_cast<std::size_t>(area.height), kGrain,
                    [&](std::size_t begin, std::size_t end) {
                      const auto width = static_cast<std::size_t>(canvas.width);
                      std::vector<float> shade(width, 0.0F);
                      std::vector<std::uint32_t> behind(kSegment, word_of(plan.colour));
                      std::vector<std::uint32_t> pixels(kSegment);
                      bool all_opaque = true;
                      for (std::size_t row = begin; row < end; ++row) {
                        const int y = area.top + static_cast<int>(row);
                        if (shadow != nullptr) {
                          const Box& box = shadow->box();
                          float* const first = shade.data() + box.left;
                          if (y >= box.top && y < box.top + box.height) {
                            shadow->row(y, first);
                          } else {
                            std::fill_n(first, box.width, 0.0F);
                          }
                        }
                        for (int x = area.left; x < area.left + area.width; x += kSegment) {
                          const int n = std::min(kSegment, area.left + area.width - x);
                          const std::size_t bytes = static_cast<std::size_t>(n) * 4;
                          const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(x) * 4;
                          std::uint8_t* const at = canvas.row(y) + offset;
                          if (scan_alpha(at, n).all == 255) continue;
                          std::memcpy(pixels.data(), at, bytes);  // rows may start at any byte
                          if (plan.background.data != nullptr) {
                            std::memcpy(behind.data(), plan.background.row(y) + offset, bytes);
                          }
                          lay_over(pixels.data(), behind.data(), shade.data() + x, n);
                          std::memcpy(at, pixels.data(), bytes);
                          all_opaque = all_opaque && scan_alpha(at, n).all == 255;
                        }
                      }
                      if (!all_opaque) opaque = false;
                    });
  return opaque;
}

}  // namespace

ComposeSummary compose(std::span<std::uint8_t> buffer, int width, const ComposePlan& plan,
                       ThreadPool& pool) {
  place(buffer, width, plan.source, plan.width, plan.height, plan.target, pool);
  const ImageView canvas{buffer.data(), plan.width, plan.height,
                         static_cast<std::ptrdiff_t>(plan.width) * 4};
  const Box whole{0, 0, plan.width, plan.height};
  const MatteSummary matte = summarise_alpha(canvas, plan.target, pool);
  const bool opaque = matte.opaque && plan.target == whole;
  std::optional<ShadowPlane> shadow;
  if (plan.shadow && !matte.box.empty()) shadow.emplace(canvas, matte.box, *plan.shadow, pool);
  const bool has_background = plan.background.data != nullptr || plan.colour[3] != 0;
  if (opaque || (!has_background && !shadow)) return {matte.box, opaque};
  const Box area = has_background ? whole : shadow->box();
  const bool laid_opaque = lay_layers(canvas, plan, shadow ? &*shadow : nullptr, area, pool);
  // Nothing was drawn outside a shadow that does not cover the canvas, and the subject is not
  // opaque.
  return {matte.box, laid_opaque && area == whole};
}

}  // namespace cutout
