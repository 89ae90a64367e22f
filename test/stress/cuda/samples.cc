// The kernels of native/cuda/kernels/ for colour sampling and for planes of other sizes.
#include "cuda/kernels/colour_sampling.h"
#include "image/plane.h"
#include "image/taps.h"
#include "matte/colour_sampling.h"
#include "stress/cuda/kernels.h"
#include "stress/cuda/output.h"
#include "stress/cuda/taps.h"

namespace cutout::test {

namespace {

std::vector<float> noise(Cases& cases, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = cases.share();
  return values;
}

std::vector<float> planes_of(const ColourSampling& samples, std::size_t size) {
  std::vector<float> planes;
  for (const auto* plane : {&samples.alpha, &samples.sample_confidence, &samples.sampled_alpha}) {
    planes.insert(planes.end(), plane->get(), plane->get() + size);
  }
  return planes;
}

void sample_colours(Cases& cases, Tables tables, std::span<double> found) {
  Output output(cases, cases.side(200), cases.side(120));
  if (cases.pick(0, 7) == 0) output.p.front() = std::numeric_limits<float>::quiet_NaN();
  const std::size_t size = output.p.size();
  // Colours that follow the output, as at an edge, and some that do not.
  std::vector<float> colours = noise(cases, 3 * size);
  const float share = cases.share();
  for (std::size_t i = 0; i < 3 * size; ++i) {
    colours[i] = share * colours[i] + (1 - share) * std::max(0.0F, output.p[i % size]);
  }
  Guide guide;
  guide.width = output.width;
  guide.height = output.height;
  for (std::size_t c = 0; c < 3; ++c) {
    guide.planes[c] = colours.data() + c * size;
    guide.scale[c] = 0.9F;
    guide.offset[c] = 0.03F;
  }
  const std::vector<float> expected =
      planes_of(cutout::sample_colours(guide, output.p, pool()), size);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> planes(table, colours);
    const Buffer<float> p(table, output.p);
    const Buffer<float> pyramid(table, cuda::pyramid_size(guide.width, guide.height));
    const Buffer<float> scratch(table, cuda::sampling_scratch(guide.width, guide.height));
    const Buffer<float> result(table, 3 * size);
    const cuda::GuidePlanes on_device{
        {planes.data(), planes.data() + size, planes.data() + 2 * size},
        {0.9F, 0.9F, 0.9F},
        {0.03F, 0.03F, 0.03F},
        guide.width,
        guide.height};
    check(table, table.sample_colours(on_device, p.data(), pyramid.data(), scratch.data(),
                                      result.data(), nullptr));
    found[i] = difference(result.read(), expected);
  }
}

void resize_plane(Cases& cases, Tables tables, std::span<double> found) {
  const Output output(cases, cases.side(150), cases.side(90));
  const int width = cases.side(150);
  const int height = cases.side(90);
  std::vector<float> expected(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  cutout::resize_plane(output.p, output.width, output.height, width, height, expected, pool());
  const Taps rows = area_taps(output.height, height);
  const Taps columns = area_taps(output.width, width);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> p(table, output.p);
    const DeviceTaps down(table, rows);
    const DeviceTaps across(table, columns);
    const Buffer<float> scratch(table, static_cast<std::size_t>(output.width * height));
    const Buffer<float> result(table, expected.size());
    check(table, table.resize_plane(p.data(), output.width, down.get(), across.get(),
                                    scratch.data(), result.data(), nullptr));
    found[i] = difference(result.read(), expected);
  }
}

constexpr Check kChecks[] = {
    {"sample_colours", 0, 0, 5, sample_colours},
    {"resize_plane", 0, 0, 5, resize_plane},
};

}  // namespace

std::span<const Check> sample_checks() { return kChecks; }

}  // namespace cutout::test
