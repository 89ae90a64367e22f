#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/image_view.h"
#include "image/network_input.h"
#include "image/shadow.h"
#include "pipeline/compose.h"

namespace cutout::test {

/// The definitions of kernels of native/image and native/pipeline/compose.h, pixel by pixel in
/// double precision: what the fast ones are compared with. Arguments are those of the kernels.

/// fill_network_input, in two dimensions at once.
void fill_network_input_scalar(ConstImageView rgba, const NetworkInput& spec, float* out);

/// reduce_in_place, in two dimensions at once. `out` holds width * height * 4 bytes.
void reduce_scalar(ConstImageView rgba, int width, int height, std::uint8_t* out);

/// enlarge_in_place. `out` holds width * height * 4 bytes.
void enlarge_scalar(ConstImageView rgba, int width, int height, std::uint8_t* out);

/// resize_plane, in two dimensions at once.
void resize_plane_scalar(std::span<const float> plane, int in_width, int in_height, int width,
                         int height, std::span<float> out);

/// Returns the bounding box of a subject and its shadow. The shadow's part is the subject's box,
/// moved and grown by ceil(3 * sigma) on each side; nothing is drawn outside.
Box shadow_extent(const Box& subject, const DropShadow& shadow);

/// ShadowPlane: returns the Gaussian of the moved alpha at every pixel of the canvas, at full size;
/// canvas.width * canvas.height numbers.
std::vector<float> shadow_scalar(ConstImageView canvas, const Box& subject,
                                 const DropShadow& shadow);

/// compose, of an image that is placed already: lays it over shadow and background.
void compose_scalar(ImageView canvas, const Box& subject, const ComposePlan& plan);

}  // namespace cutout::test
