// The kernels of native/cuda/kernels/ that replace native/image.
#include <algorithm>
#include <cstring>
#include <set>

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

/// Whether what was gathered makes each pixel of the image that is not in an opaque or transparent
/// run, from room for so many runs.
bool gathered(const Image& image, std::uint32_t count, const std::vector<std::uint32_t>& states,
              const std::vector<std::uint32_t>& packed, std::uint32_t capacity) {
  constexpr int kRun = 32;
  const int across = (image.width + kRun - 1) / kRun;
  std::set<std::uint32_t> places;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; x += kRun) {
      const int n = std::min(kRun, image.width - x);
      const std::uint32_t* const words = image.words.data() + area(image.width, y) + x;
      const std::uint32_t state = states[area(across, y) + static_cast<std::size_t>(x / kRun)];
      const bool opaque = std::all_of(words, words + n, [](auto w) { return w >> 24 == 255; });
      const bool clear = std::all_of(words, words + n, [](auto w) { return w >> 24 == 0; });
      if (opaque || clear) {
        if (state != (opaque ? 0 : 1)) return false;
        continue;
      }
      if (state < 2 || !places.insert(state - 2).second) return false;
      if (state - 2 < capacity && !std::equal(words, words + n, &packed[(state - 2) * kRun]))
        return false;
    }
  }
  return places.size() == count && (places.empty() || *places.rbegin() == count - 1);
}

void gather_edge_runs(Cases& cases, Tables tables, std::span<double> found) {
  Image image(cases, cases.side(400), cases.side(120));
  const int last = static_cast<int>(image.words.size()) - 1;
  for (int changed = cases.pick(0, 8); changed > 0; --changed) {
    std::uint32_t& word = image.words[static_cast<std::size_t>(cases.pick(0, last))];
    word = (word & 0xFFFFFFU) | (cases.pick(0, 1) == 0 ? 1U : 254U) << 24;
  }
  const std::size_t runs = area((image.width + 31) / 32, image.height);
  const auto capacity = static_cast<std::uint32_t>(cases.pick(0, static_cast<int>(runs)));
  constexpr std::uint32_t kUntouched = 0xABCDEF01;
  const std::vector<std::uint32_t> room((capacity + std::size_t{1}) * 32, kUntouched);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const Buffer<std::uint32_t> count(table, std::vector<std::uint32_t>{0});
    const Buffer<std::uint32_t> states(table, std::vector<std::uint32_t>(runs, kUntouched));
    const Buffer<std::uint32_t> packed(table, room);
    check(table,
          table.gather_edge_runs(pixels(words, image.width, image.height),
                                 {count.data(), states.data(), packed.data(), capacity}, nullptr));
    const std::vector<std::uint32_t> got = packed.read();
    const bool inside =
        std::all_of(got.end() - 32, got.end(), [](auto w) { return w == kUntouched; });
    const bool right = gathered(image, count.read().front(), states.read(), got, capacity);
    found[i] = inside && right ? 0 : std::numeric_limits<double>::infinity();
  }
}

constexpr Check kChecks[] = {
    {"network_input", 0, 0, 20, network_input},
    {"probability", 0, 3e-7, 5, probability},
    {"reduce", 0, 0, 15, reduce},
    {"summarise", 0, 0, 5, summarise},
    {"gather_edge_runs", 0, 0, 10, gather_edge_runs},
};

}  // namespace

std::span<const Check> image_checks() { return kChecks; }

}  // namespace cutout::test
