#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "scalar/image.h"

namespace cutout::test {

namespace {

/// The part of the canvas that the shadow of a subject may cover.
Box shadow_box(const Box& subject, const DropShadow& shadow) {
  const int radius = static_cast<int>(std::ceil(3 * static_cast<double>(shadow.sigma)));
  return {subject.left + shadow.offset_x - radius, subject.top + shadow.offset_y - radius,
          subject.width + 2 * radius, subject.height + 2 * radius};
}

/// Whether the shadow fades: it is asked for, and the canvas's lower border cuts the subject.
bool fades(const Box& subject, int canvas_height, const DropShadow& shadow) {
  return shadow.fade > 0 && subject.top + subject.height == canvas_height;
}

}  // namespace

Box shadow_extent(const Box& subject, const DropShadow& shadow) {
  const Box box = shadow_box(subject, shadow);
  const int left = std::min(subject.left, box.left);
  const int top = std::min(subject.top, box.top);
  return {left, top, std::max(subject.left + subject.width, box.left + box.width) - left,
          std::max(subject.top + subject.height, box.top + box.height) - top};
}

std::vector<float> shadow_scalar(ConstImageView canvas, const Box& subject,
                                 const DropShadow& shadow) {
  const auto width = static_cast<std::size_t>(canvas.width);
  const Box box = clip(shadow_box(subject, shadow), canvas);
  const int rows = fades(subject, canvas.height, shadow) ? shadow.fade : 0;
  const auto sigma = static_cast<double>(shadow.sigma);
  // Weight of a pixel at a distance, normalised over all pixels within the radius.
  const int radius = static_cast<int>(std::ceil(5 * sigma));
  const auto weight = [&](int distance) {
    return std::exp(-0.5 * distance * distance / (sigma * sigma));
  };
  double sum = 0;
  for (int k = -radius; k <= radius; ++k) sum += weight(k);
  std::vector<double> across(width * static_cast<std::size_t>(canvas.height), 0.0);
  for (int y = subject.top; y < subject.top + subject.height; ++y) {
    for (int x = box.left; x < box.left + box.width; ++x) {
      double& to = across[static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x)];
      for (int i = subject.left; i < subject.left + subject.width; ++i) {
        const int distance = x - shadow.offset_x - i;
        if (std::abs(distance) <= radius)
          to += canvas.row(y)[i * 4 + 3] / 255.0 * weight(distance) / sum;
      }
    }
  }
  std::vector<float> result(across.size(), 0.0F);
  for (int y = box.top; y < box.top + box.height; ++y) {
    for (int x = box.left; x < box.left + box.width; ++x) {
      double strength = 0;
      for (int j = subject.top; j < subject.top + subject.height; ++j) {
        const int distance = y - shadow.offset_y - j;
        if (std::abs(distance) > radius) continue;
        strength += across[static_cast<std::size_t>(j) * width + static_cast<std::size_t>(x)] *
                    weight(distance) / sum;
      }
      result[static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x)] =
          static_cast<float>(strength) * shadow.opacity * fade_at(y, canvas.height, rows);
    }
  }
  return result;
}

void compose_scalar(ImageView canvas, const Box& subject, const ComposePlan& plan) {
  std::vector<float> shadow(
      static_cast<std::size_t>(canvas.width) * static_cast<std::size_t>(canvas.height), 0.0F);
  if (plan.shadow && !subject.empty()) shadow = shadow_scalar(canvas, subject, *plan.shadow);
  for (int y = 0; y < canvas.height; ++y) {
    for (int x = 0; x < canvas.width; ++x) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(x) * 4;
      std::uint8_t* pixel = canvas.row(y) + at;
      const std::uint8_t* behind =
          plan.background.data != nullptr ? plan.background.row(y) + at : plan.colour.data();
      const double shade = static_cast<double>(
          shadow[static_cast<std::size_t>(y) * static_cast<std::size_t>(canvas.width) +
                 static_cast<std::size_t>(x)]);
      const double alpha = pixel[3] / 255.0;
      const double seen = behind[3] / 255.0 * (1 - shade);
      const double total = alpha + (1 - alpha) * (shade + seen);
      const auto a = static_cast<std::uint8_t>(std::lround(total * 255));
      if (a == 0) continue;
      for (int c = 0; c < 3; ++c) {
        const double value = (pixel[c] * alpha + behind[c] * seen * (1 - alpha)) / total;
        pixel[c] = static_cast<std::uint8_t>(std::lround(value));
      }
      pixel[3] = a;
    }
  }
}

}  // namespace cutout::test
