// The kernels of native/cuda/kernels/ that say what the subject is.
#include "cuda/kernels/component_filter.h"
#include "cuda/kernels/mask_constraint.h"
#include "matte/component_filter.h"
#include "matte/mask_constraint.h"
#include "stress/cuda/kernels.h"
#include "stress/cuda/output.h"

namespace cutout::test {

namespace {

/// One in `seldom` is so large that blocks are several network pixels wide.
Output output_of(Cases& cases, int seldom = 40) {
  if (cases.pick(1, seldom) == 1) return {cases, cases.pick(500, 900), cases.pick(20, 90)};
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

void sum_uncertainty(Cases& cases, Tables tables, std::span<double> found) {
  const Output output = output_of(cases);
  const Box area = area_of(cases, output);
  const int block = cases.pick(1, 9);
  unsigned long long belief = 0;
  unsigned long long variance = 0;
  unsigned long long patches = 0;
  for (int top = 0; top < area.height; top += block) {
    for (int left = 0; left < area.width; left += block) {
      std::vector<int> values;
      for (int y = top; y < std::min(area.height, top + block); ++y) {
        for (int x = left; x < std::min(area.width, left + block); ++x) {
          const auto i = static_cast<std::size_t>((area.top + y) * output.width + area.left + x);
          const auto steps = static_cast<int>(std::floor(output.p[i] * 2047.0F + 0.5F));
          belief += static_cast<unsigned long long>(steps);
          values.push_back(steps * (2047 - steps));
          variance += static_cast<unsigned long long>(values.back());
        }
      }
      patches += static_cast<unsigned long long>(std::ranges::min(values)) * values.size();
    }
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> p(table, output.p);
    const Buffer<UncertaintySums> sums(table, std::vector<UncertaintySums>(1));
    check(table, table.sum_uncertainty(p.data(), output.width, area, block, sums.data(), nullptr));
    const UncertaintySums got = sums.read().front();
    found[i] =
        got.probability == belief && got.variance == variance && got.patches == patches ? 0 : 1;
  }
}

/// A mask of a subject: all in, all out, between, halves, noise at the thresholds, or patches.
std::vector<std::uint8_t> mask_of(Cases& cases, int width, int height) {
  constexpr int kLevels[] = {0, 11, 12, 13, 128, 242, 243, 244, 255};
  const auto level = [&] {
    return static_cast<std::uint8_t>(
        kLevels[cases.pick(0, static_cast<int>(std::size(kLevels)) - 1)]);
  };
  const int kind = cases.pick(0, 5);
  const int edge = cases.pick(0, width);
  const int longest = cases.pick(1, 400);
  std::vector<std::uint8_t> mask;
  std::uint8_t patch = 0;
  for (int i = 0; i < width * height; ++i) {
    if (cases.pick(0, longest) == 0) patch = cases.pick(0, 2) == 0 ? level() : patch ^ 255;
    mask.push_back(kind == 0   ? 255
                   : kind == 1 ? 0
                   : kind == 2 ? (i % width < edge ? 255 : 0)
                   : kind == 3 ? level()
                               : patch);
  }
  return mask;
}

struct DeviceAxis {
  const Buffer<LinearTap> mask;
  const Buffer<LinearTap> blocks;
  int outputs;

  DeviceAxis(const cuda::Table& table, const std::vector<LinearTap>& of_mask,
             const std::vector<LinearTap>& of_blocks)
      : mask(table, of_mask), blocks(table, of_blocks), outputs(static_cast<int>(of_mask.size())) {}

  [[nodiscard]] cuda::MaskTaps taps() const { return {mask.data(), blocks.data(), outputs}; }
};

/// constrain, then restore_marked of an output of which a part was removed.
void mask_constraint(Cases& cases, Tables tables, std::span<double> found) {
  const Output output = output_of(cases, 5);
  const int mask_width = cases.side(160);
  const int mask_height = cases.side(160);
  const std::vector<std::uint8_t> mask = mask_of(cases, mask_width, mask_height);
  const int image_width = cases.side(4000);
  const int image_height = cases.side(4000);
  const Box view = cases.pick(0, 1) == 0 ? Box{0, 0, image_width, image_height}
                                         : cases.box_in(image_width, image_height);
  const Box removed = cases.box_in(output.width, output.height);
  const auto remove = [&](std::vector<float> p) {
    for (int y = removed.top; y < removed.top + removed.height; ++y) {
      const auto row = static_cast<std::ptrdiff_t>(y) * output.width + removed.left;
      std::fill_n(p.begin() + row, removed.width, 0.0F);
    }
    return p;
  };
  const NetworkMask at_network = resize_mask({mask, mask_width, mask_height}, view, image_width,
                                             image_height, output.width, output.height, pool());
  std::vector<float> constrained = output.p;
  constrain(constrained, at_network, pool());
  std::vector<float> restored = remove(constrained);
  restore_marked(restored, constrained, at_network, pool());

  const BlockGrid grid(output.width, output.height);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> p(table, output.p);
    const Buffer<std::uint8_t> values(table, mask);
    const DeviceAxis rows(
        table, mask_taps(view.top, view.height, image_height, mask_height, output.height),
        block_taps(output.height, grid.side, grid.rows));
    const DeviceAxis columns(
        table, mask_taps(view.left, view.width, image_width, mask_width, output.width),
        block_taps(output.width, grid.side, grid.columns));
    const Buffer<std::byte> scratch(table, cuda::constraint_scratch(output.width, output.height));
    const Buffer<std::uint8_t> marked(table, cuda::block_count(output.width, output.height));
    check(table, table.constrain(p.data(), values.data(), mask_width, rows.taps(), columns.taps(),
                                 scratch.data(), marked.data(), nullptr));
    const std::vector<float> got = p.read();
    const Buffer<float> filtered(table, remove(got));
    check(table, table.restore_marked(filtered.data(), p.data(), output.width, output.height,
                                      marked.data(), nullptr));
    found[i] = std::max(difference(got, constrained), difference(filtered.read(), restored));
  }
}

constexpr Check kChecks[] = {
    {"mask_constraint", 0, 0, 10, mask_constraint},
    {"sum_uncertainty", 0, 0, 10, sum_uncertainty},
    {"filter_components", 0, 0, 10, filter_components},
};

}  // namespace

std::span<const Check> subject_checks() { return kChecks; }

}  // namespace cutout::test
