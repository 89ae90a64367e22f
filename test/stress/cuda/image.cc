// The kernels of native/cuda/kernels/ that replace native/image.
#include <cstring>

#include "core/cancel.h"
#include "image/cubic_axis.h"
#include "image/enlarge.h"
#include "image/math/cubic.h"
#include "image/network_input.h"
#include "image/resample.h"
#include "image/shadow.h"
#include "image/taps.h"
#include "matte/summary.h"
#include "pipeline/compose.h"
#include "pipeline/probability.h"
#include "stress/cuda/kernels.h"
#include "stress/cuda/taps.h"

namespace cutout::test {

namespace {

std::size_t area(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

class DeviceAxis {
 public:
  DeviceAxis(const cuda::Table& table, const CubicAxis& axis, int outputs)
      : before_(table, axis.before),
        a_(table, axis.weights[0]),
        b_(table, axis.weights[1]),
        c_(table, axis.weights[2]),
        d_(table, axis.weights[3]),
        outputs_(outputs) {}
  [[nodiscard]] cuda::CubicTaps get() const {
    return {before_.data(), {a_.data(), b_.data(), c_.data(), d_.data()}, outputs_};
  }

 private:
  Buffer<int> before_;
  Buffer<float> a_, b_, c_, d_;
  int outputs_;
};

void network_input(Cases& cases, Tables tables, std::span<double> found) {
  Image image(cases, cases.side(2400), cases.side(90));
  const NetworkInput spec{
      cases.side(90), cases.side(60), {123.7F, 116.3F, 103.5F}, {58.4F, 57.1F, 57.4F}};
  std::vector<float> expected(3 * area(spec.width, spec.height));
  fill_network_input(image.view(), spec, expected.data(), pool());
  cuda::Normalisation how{};
  for (std::size_t c = 0; c < 3; ++c) {
    how.mean[c] = spec.mean[c];
    how.scale[c] = 1.0F / spec.std[c];
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const DeviceTaps rows(table, area_taps(image.height, spec.height));
    const DeviceTaps columns(table, area_taps(image.width, spec.width));
    const Buffer<float> scratch(table, 4 * area(image.width, spec.height));
    const Buffer<float> out(table, expected.size());
    check(table, table.network_input(pixels(words, image.width, image.height), rows.get(),
                                     columns.get(), how, scratch.data(), out.data(), nullptr));
    found[i] = difference(out.read(), expected);
  }
}

void probability(Cases& cases, Tables tables, std::span<double> found) {
  std::vector<float> values(static_cast<std::size_t>(cases.side(2000)));
  const bool logit = cases.pick(0, 1) == 0;
  for (float& value : values)
    value = cases.share() * (logit ? 200.0F : 1.2F) - (logit ? 100.0F : 0.1F);
  const bool bad = cases.pick(0, 4) == 0;
  if (bad) {
    constexpr float kBad[] = {std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()};
    values[static_cast<std::size_t>(cases.pick(0, static_cast<int>(values.size()) - 1))] =
        kBad[cases.pick(0, 2)];
  }
  std::vector<float> expected = values;
  const bool finite =
      to_probability(expected, logit ? NetworkOutput::kLogit : NetworkOutput::kProbability, pool())
          .ok();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> out(table, values);
    const Buffer<std::uint32_t> not_finite(table, std::vector<std::uint32_t>{0});
    check(table, table.probability(out.data(), values.size(), logit, not_finite.data(), nullptr));
    const bool same = (not_finite.read().front() == 0) == finite;
    found[i] = !same ? std::numeric_limits<double>::infinity()
               : bad ? 0
                     : difference(out.read(), expected);
  }
}

/// The words of the first pixels of a buffer.
std::vector<std::uint32_t> words_of(std::span<const std::uint8_t> bytes, std::size_t pixels) {
  std::vector<std::uint32_t> words(pixels);
  std::memcpy(words.data(), bytes.data(), pixels * 4);
  return words;
}

std::vector<std::uint8_t> bytes_of(const std::vector<std::uint32_t>& words) {
  std::vector<std::uint8_t> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

/// Differences of bytes, not of words.
double byte_difference(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  return difference(bytes_of(a), bytes_of(b));
}

void reduce(Cases& cases, Tables tables, std::span<double> found) {
  Image image(cases, 1 + cases.side(2400), cases.side(90));
  const int width = cases.pick(1, image.width - 1);
  const int height = cases.pick(std::max(1, image.height / 4), image.height);
  Image reduced = image;
  (void)reduce_in_place(reduced.view(), width, height, pool());
  reduced.words.resize(area(width, height));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const DeviceTaps rows(table, lanczos3_taps(image.height, height));
    const DeviceTaps columns(table, lanczos3_taps(image.width, width));
    const Buffer<float> scratch(table, 4 * area(image.width, height));
    const Buffer<std::uint32_t> out(table, area(width, height));
    check(table, table.reduce(pixels(words, image.width, image.height), rows.get(), columns.get(),
                              scratch.data(), pixels(out, width, height), nullptr));
    found[i] = byte_difference(out.read(), reduced.words);
  }
}

void enlarge(Cases& cases, Tables tables, std::span<double> found) {
  Image image(cases, cases.side(600), cases.side(60));
  const int width = image.width + 1 + cases.side(200);
  const int height = image.height + cases.side(40) - 1;
  std::vector<std::uint8_t> buffer = bytes_of(image.words);
  buffer.resize(area(width, height) * 4);
  const ConstImageView view{buffer.data(), image.width, image.height,
                            static_cast<std::ptrdiff_t>(image.width) * 4};
  (void)enlarge_in_place(buffer, view, width, height, pool());
  const std::vector<std::uint32_t> expected = words_of(buffer, area(width, height));
  const std::size_t kinds_of_row =
      static_cast<std::size_t>((image.width + kCubicPiece - 1) / kCubicPiece);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const DeviceAxis rows(table, CubicAxis(image.height, height), height);
    const DeviceAxis columns(table, CubicAxis(image.width, width), width);
    const Buffer<float> scratch(table, 4 * area(image.width, height));
    const Buffer<std::uint8_t> kinds(table, kinds_of_row * static_cast<std::size_t>(height));
    const Buffer<std::uint32_t> out(table, area(width, height));
    check(table, table.enlarge(pixels(words, image.width, image.height), rows.get(), columns.get(),
                               scratch.data(), kinds.data(), pixels(out, width, height), nullptr));
    found[i] = byte_difference(out.read(), expected);
  }
}

DropShadow any_shadow(Cases& cases) {
  return {cases.share(),
          static_cast<float>(cases.pick(0, 3) == 0 ? cases.pick(60, 400) : cases.pick(1, 80)) / 10,
          cases.pick(-50, 50), cases.pick(-50, 50), cases.pick(0, 1) * cases.pick(0, 20)};
}

/// Computes a shadow's blocks.
void fill_blocks(const cuda::Table& table, const cuda::Pixels& canvas, const Box& subject,
                 const ShadowLayout& layout, const Buffer<float>& blocks) {
  const Buffer<float> blur(table, layout.blur);
  const int rows = (subject.height + layout.grid.block - 1) / layout.grid.block;
  const Buffer<std::uint32_t> sums(table, area(subject.width, rows));
  const Buffer<float> scratch(table, area(layout.grid.width, layout.grid.height));
  check(table, table.shadow(canvas, subject, layout.grid, blur.data(),
                            static_cast<int>(layout.blur.size()), sums.data(), scratch.data(),
                            blocks.data(), nullptr));
  check(table, table.synchronize(nullptr));
}

/// The whole of compose() without moving and scaling: summary, shadow, layers.
void compose(Cases& cases, Tables tables, std::span<double> found) {
  Image image(cases, cases.side(400), cases.side(120));
  Image background(cases, image.width, image.height);
  ComposePlan plan;
  plan.width = image.width;
  plan.height = image.height;
  plan.source = plan.target = {0, 0, image.width, image.height};
  if (cases.pick(0, 1) == 0) plan.background = background.view();
  if (cases.pick(0, 1) == 0)
    plan.colour = {7, 70, 170, static_cast<std::uint8_t>(cases.pick(0, 255))};
  if (cases.pick(0, 3) != 0) plan.shadow = any_shadow(cases);
  std::vector<std::uint8_t> buffer = bytes_of(image.words);
  ComposeSummary summary;
  const CancelToken token;
  (void)cutout::compose(buffer, image.width, image.height, plan, token, pool(), summary);
  const std::vector<std::uint32_t> expected = words_of(buffer, image.words.size());
  const Box subject = summary.box;
  const bool shaded = plan.shadow && !subject.empty();
  const ShadowLayout layout =
      shaded ? shadow_layout(image.view(), subject, *plan.shadow) : ShadowLayout{};
  std::uint32_t colour = 0;
  std::memcpy(&colour, plan.colour.data(), 4);
  const bool has_background = plan.background.data != nullptr || colour != 0;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const Buffer<std::uint32_t> behind(table, background.words);
    const cuda::Pixels canvas = pixels(words, image.width, image.height);
    const cuda::Pixels below = plan.background.data != nullptr
                                   ? pixels(behind, image.width, image.height)
                                   : cuda::Pixels{nullptr, 0, 0, 0};
    const auto lay = [&](const float* blocks) {
      check(table, table.compose(canvas, plan.target, below, colour, layout.box, layout.grid,
                                 blocks, nullptr));
    };
    if (shaded) {
      const Buffer<float> blocks(table, area(layout.grid.width, layout.grid.height));
      fill_blocks(table, canvas, subject, layout, blocks);
      lay(blocks.data());
      found[i] = byte_difference(words.read(), expected);
    } else {
      if (has_background) lay(nullptr);
      found[i] = byte_difference(words.read(), expected);
    }
  }
}

void shadow(Cases& cases, Tables tables, std::span<double> found) {
  Image image(cases, cases.side(400), cases.side(120));
  const Box subject = cases.box_in(image.width, image.height);
  const DropShadow drop = any_shadow(cases);
  const ShadowLayout layout = shadow_layout(image.view(), subject, drop);
  const ShadowPlane plane(image.view(), subject, drop, pool());
  std::vector<float> expected(area(layout.box.width, layout.box.height));
  for (int y = 0; y < layout.box.height; ++y) {
    plane.row(layout.box.top + y, expected.data() + area(layout.box.width, y));
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const Buffer<float> device(table, area(layout.grid.width, layout.grid.height));
    fill_blocks(table, pixels(words, image.width, image.height), subject, layout, device);
    const std::vector<float> blocks = device.read();
    std::vector<float> strengths;
    for (int y = 0; y < layout.box.height; ++y) {
      for (int x = 0; x < layout.box.width; ++x) {
        strengths.push_back(
            shadow_at(layout.grid, blocks.data(), layout.box.left + x, layout.box.top + y));
      }
    }
    found[i] = difference(strengths, expected);
  }
}

void summarise(Cases& cases, Tables tables, std::span<double> found) {
  Image image(cases, cases.side(400), cases.side(120));
  const Box region = cases.box_in(image.width, image.height);
  const MatteSummary expected = summarise_alpha(image.view(), region, pool());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const Buffer<cuda::AlphaSummary> summary(table, 1);
    check(table, table.summarise(pixels(words, image.width, image.height), region, summary.data(),
                                 nullptr));
    const cuda::AlphaSummary got = summary.read().front();
    const Box box =
        got.right < 0 ? Box{}
                      : Box{got.left, got.top, got.right - got.left + 1, got.bottom - got.top + 1};
    const bool same = box == expected.box && got.foreground == expected.foreground_pixels &&
                      (got.opaque == area(region.width, region.height)) == expected.opaque;
    found[i] = same ? 0 : std::numeric_limits<double>::infinity();
  }
}

constexpr Check kChecks[] = {
    {"network_input", 0, 0, 20, network_input},
    {"probability", 0, 3e-7, 5, probability},
    {"reduce", 0, 0, 15, reduce},
    {"enlarge", 0, 0, 10, enlarge},
    {"shadow", 0, 0, 10, shadow},
    {"compose", 0, 0, 15, compose},
    {"summarise", 0, 0, 5, summarise},
};

}  // namespace

std::span<const Check> image_checks() { return kChecks; }

}  // namespace cutout::test
