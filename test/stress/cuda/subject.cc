// The kernels of native/cuda/kernels/ that say what the subject is.
#include "cuda/kernels/component_filter.h"
#include "cuda/kernels/fusion.h"
#include "matte/component_filter.h"
#include "matte/fusion.h"
#include "stress/cuda/kernels.h"
#include "stress/cuda/output.h"

namespace cutout::test {

namespace {

/// Seldom so large that distances are measured between blocks of several network pixels.
Output output_of(Cases& cases) {
  if (cases.pick(0, 39) == 0) return {cases, cases.pick(500, 900), cases.pick(20, 90)};
  return {cases, cases.side(200), cases.side(120)};
}

Box area_of(Cases& cases, const Output& output) {
  return cases.pick(0, 1) == 0 ? Box{0, 0, output.width, output.height}
                               : cases.box_in(output.width, output.height);
}

void filter_components(Cases& cases, Tables tables, std::span<double> found) {
  const Output output = output_of(cases);
  const Box area = area_of(cases, output);
  std::vector<float> expected = output.p;
  cutout::filter_components(expected, output.width, area, pool());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> p(table, output.p);
    const Buffer<int> scratch(table, cuda::component_scratch(area.width, area.height));
    check(table, table.filter_components(p.data(), output.width, area, scratch.data(), nullptr));
    found[i] = difference(p.read(), expected);
  }
}

void count_confident(Cases& cases, Tables tables, std::span<double> found) {
  Output output = output_of(cases);
  if (cases.pick(0, 3) == 0) output.p.front() = std::numeric_limits<float>::quiet_NaN();
  const Box area = area_of(cases, output);
  std::uint32_t foreground = 0;
  std::uint32_t ambiguous = 0;
  for (int y = area.top; y < area.top + area.height; ++y) {
    for (int x = area.left; x < area.left + area.width; ++x) {
      const float p = output.p[static_cast<std::size_t>(y * output.width + x)];
      foreground += p >= 0.5F ? 1 : 0;
      ambiguous += p > 0.1F && p < 0.9F ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> p(table, output.p);
    const Buffer<cuda::ConfidenceCounts> counts(table, std::vector<cuda::ConfidenceCounts>(1));
    check(table, table.count_confident(p.data(), output.width, area, counts.data(), nullptr));
    const cuda::ConfidenceCounts got = counts.read().front();
    found[i] = got.foreground == foreground && got.ambiguous == ambiguous ? 0 : 1;
  }
}

void fuse(Cases& cases, Tables tables, std::span<double> found) {
  const Output first = output_of(cases);
  Output second(cases, first.width, first.height);
  if (cases.pick(0, 1) == 0) {
    // Agrees but for a part.
    const Box part = cases.box_in(first.width, first.height);
    const Output other = second;
    second = first;
    for (int y = part.top; y < part.top + part.height; ++y) {
      const auto row = static_cast<std::ptrdiff_t>(y) * first.width + part.left;
      std::copy_n(other.p.begin() + row, part.width, second.p.begin() + row);
    }
  }
  std::vector<float> expected = first.p;
  fuse_outputs(expected, second.p, first.width, first.height, pool());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> p(table, first.p);
    const Buffer<float> q(table, second.p);
    const Buffer<std::byte> scratch(table, cuda::fusion_scratch(first.width, first.height));
    check(table,
          table.fuse(p.data(), q.data(), first.width, first.height, scratch.data(), nullptr));
    found[i] = difference(p.read(), expected);
  }
}

constexpr Check kChecks[] = {
    {"fuse", 0, 0, 5, fuse},
    {"count_confident", 0, 0, 5, count_confident},
    {"filter_components", 0, 0, 10, filter_components},
};

}  // namespace

std::span<const Check> subject_checks() { return kChecks; }

}  // namespace cutout::test
