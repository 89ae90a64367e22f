#pragma once

#include <array>
#include <span>

#include "core/image_view.h"
#include "matte/colour_sampling.h"
#include "matte/component_filter.h"
#include "matte/connected_components.h"
#include "matte/foreground_colours.h"
#include "matte/guide.h"
#include "matte/mask_constraint.h"
#include "matte/math/local_model.h"
#include "matte/refine.h"

namespace cutout::test {

/// The definitions of kernels of native/matte, pixel by pixel: what the fast ones are compared
/// with. They share the arithmetic of a pixel (native/matte/math) and nothing else. Arguments are
/// those of the kernels.

/// find_components by flood fill; the runs are those of the labelled map's rows.
Components find_components_scalar(std::span<const float> p, int width, const Box& area, float least,
                                  float most, Connectivity connectivity);

/// filter_components by flood fill and the distance of every network pixel to every subject.
ComponentSummary filter_components_scalar(std::span<float> p, int width, const Box& area);

/// constrain by its definition, in double precision, of a mask of the whole image.
void constrain_scalar(std::span<float> p, const SubjectMask& mask, const Box& view, int image_width,
                      int image_height, int width, int height);

ColourSampling sample_colours_scalar(const Guide& guide, std::span<const float> p);

/// estimate_blur by sorting all slopes.
float estimate_blur_scalar(std::span<const float> p, int width, int height);

/// The plane that LocalModel gives one network pixel.
std::array<float, kPlaneChannels> local_model_scalar(const Guide& guide, const float* alpha, int x,
                                                     int y);

/// estimate_colours of every network pixel.
LayerColours estimate_colours_scalar(const Guide& guide, const float* alpha);

/// solve_edges and write_edges, from the deblurred matte on.
MatteSummary refine_scalar(ImageView rgba, const Guide& guide, std::span<const float> p,
                           const ColourSampling& samples, const Box& roi, HiddenColour hidden);

}  // namespace cutout::test
