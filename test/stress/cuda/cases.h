#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/image_view.h"
#include "image/math/filter.h"
#include "stress/cuda/device.h"

namespace cutout::test {

/// Random inputs of the kernels; the same in every run.
class Cases {
 public:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  float share() { return static_cast<float>(pick(0, 1000)) / 1000; }

  /// A side: often 1 or small and odd, seldom over `most` / 4.
  int side(int most) {
    switch (pick(0, 7)) {
      case 0:
        return 1;
      case 1:
        return pick(1, 8) * 2 - 1;
      case 2:
        return pick(1, most);
      default:
        return pick(1, most / 4);
    }
  }

  Box box_in(int width, int height) {
    const int w = pick(1, width);
    const int h = pick(1, height);
    return {pick(0, width - w), pick(0, height - h), w, h};
  }

 private:
  std::mt19937 random_{20261124};
};

/// An image without row padding.
struct Image {
  int width;
  int height;
  std::vector<std::uint32_t> words;

  /// All transparent, all opaque, any alpha, or opaque and transparent runs with a soft pixel
  /// between.
  Image(Cases& cases, int w, int h)
      : width(w), height(h), words(static_cast<std::size_t>(w) * static_cast<std::size_t>(h)) {
    const int kind = cases.pick(0, 3);
    const bool pieces = cases.pick(0, 1) == 0;
    const int run = pieces ? kFilterTile / 8 * cases.pick(1, 8) : cases.pick(1, 700);
    std::size_t i = 0;
    for (std::uint32_t& word : words) {
      const int in_run = static_cast<int>(i++ % static_cast<std::size_t>(2 * run));
      const int any = cases.pick(0, 255);
      const int alpha = kind == 0   ? 0
                        : kind == 1 ? 255
                        : kind == 2 ? any
                                    : (in_run < run - 1 ? 255
                                       : in_run >= run  ? 0
                                       : pieces         ? 255
                                                        : any);
      word = static_cast<std::uint32_t>(cases.pick(0, 0xFFFFFF)) | static_cast<std::uint32_t>(alpha)
                                                                       << 24;
    }
  }

  [[nodiscard]] ImageView view() {
    return {reinterpret_cast<std::uint8_t*>(words.data()), width, height,
            static_cast<std::ptrdiff_t>(width) * 4};
  }
};

inline cuda::Pixels pixels(const Buffer<std::uint32_t>& words, int width, int height) {
  return {words.data(), width, height, width};
}

/// A guide and an alpha of network pixels.
struct Network {
  int width;
  int height;
  std::vector<float> planes;
  std::vector<float> alpha;  // in 0..1

  Network(Cases& cases, int w, int h) : width(w), height(h) {
    const std::size_t size = static_cast<std::size_t>(w) * static_cast<std::size_t>(h);
    const bool one_colour = cases.pick(0, 4) == 0;
    for (std::size_t i = 0; i < 3 * size; ++i) planes.push_back(one_colour ? 0.4F : cases.share());
    const int kind = cases.pick(0, 3);
    for (std::size_t i = 0; i < size; ++i) {
      const auto x = static_cast<int>(i % static_cast<std::size_t>(w));
      const float ramp = static_cast<float>(x - w / 2) / 6 + 0.5F;
      alpha.push_back(kind == 0   ? 0.0F
                      : kind == 1 ? 1.0F
                      : kind == 2 ? cases.share()
                                  : std::clamp(ramp, 0.0F, 1.0F));
    }
  }

  [[nodiscard]] std::size_t size() const { return alpha.size(); }
};

}  // namespace cutout::test
