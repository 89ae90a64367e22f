// The kernels of native/cuda/kernels/ that replace native/image.
#include <cstring>

#include "image/network_input.h"
#include "image/resample.h"
#include "image/taps.h"
#include "matte/summary.h"
#include "pipeline/cpu_backend.h"
#include "stress/cuda/kernels.h"
#include "stress/cuda/taps.h"

namespace cutout::test {

namespace {

std::size_t area(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

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
  const auto width = static_cast<int>(expected.size());
  Uncertainty ignored;
  const bool finite =
      make_cpu_backend(pool())
          ->to_probability(host_tensor(expected, 1, 1, width),
                           logit ? NetworkOutput::kLogit : NetworkOutput::kProbability,
                           {0, 0, width, 1}, ignored)
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
  reduce_in_place(reduced.view(), width, height, pool());
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
    {"summarise", 0, 0, 5, summarise},
};

}  // namespace

std::span<const Check> image_checks() { return kChecks; }

}  // namespace cutout::test
