#pragma once

#include <array>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Size and normalisation of a network's input: planes R, G, B of (v - mean) / std with v in
/// 0..255.
struct NetworkInput {
  int width = 0;
  int height = 0;
  std::array<float, 3> mean{};
  std::array<float, 3> std{};
};

/// Stretches the image to the network's input: in each direction area average where it shrinks,
/// linear interpolation between pixel centres where it grows. Transparency is laid over gray 128.
/// `out` holds 3 * width * height floats, plane after plane, row after row.
///
/// | limit      |                                                                                  |
/// |------------|----------------------------------------------------------------------------------|
/// | layout in  | straight RGBA8, any stride >= width * 4, at least 1 x 1                          |
/// | layout out | planar float RGB without padding                                                 |
/// | in == out  | no                                                                               |
/// | threads    | rows of the output over the pool; bit-equal for any number of threads            |
/// | scratch    | one float RGBA row of the image and of the output for each running range         |
/// | agreement  | within 0.002 / std of the scalar version (float against double sums)             |
void fill_network_input(ConstImageView rgba, const NetworkInput& spec, float* out,
                        ThreadPool& pool);

}  // namespace cutout
