#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// What filter_components changed.
struct ComponentSummary {
  int removed = 0;  // components that became background
  int filled = 0;   // holes that became foreground

  bool operator==(const ComponentSummary&) const = default;
};

/// Removes connected components that are no part of a subject and fills small holes in the others,
/// in place. Only network pixels of `area` are read and changed. A component is a connected set
/// (eight neighbours) of network pixels with p >= 0.02. Lengths are fractions of the longer side of
/// the area, so that they do not depend on the size of the network's output.
///
/// A component is a subject when it has network pixels with p >= 1/2, and at least 1/200 as many as
/// the component that has most. Subjects are kept. Another component becomes 0 unless it is
///
/// | kind  | definition                                            | kept within this of a subject |
/// |-------|-------------------------------------------------------|-------------------------------|
/// | piece | has p >= 1/2, at least 1/5000 as often as the largest | 1/8                           |
/// | wisp  | reaches 0.1: hair, rope, web                          | 1/16                          |
/// | haze  | any other                                             | never                         |
///
/// A hole is a connected set (four neighbours) of network pixels with p <= 0.98. It becomes 1 when
/// p is nowhere in it below 0.9 and it has at most 1/50 of the network pixels of the component
/// around it. Everything deeper is kept: openings, gaps in fur, glass, veils (decision 0096).
///
/// Nothing changes when no network pixel reaches 1/2: there is no subject then.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | rows of `width` floats; the area lies inside, at least 1 x 1, sides up to 8192         |
/// | values    | 0..1 (to_probability)                                                                  |
/// | distance  | Chebyshev distance of blocks of side/256 (at least 1) network pixels: exact to a block |
/// | threads   | rows over the pool; same bytes and summary for any number of threads                   |
/// | scratch   | connected_components.h, one 16-bit value for each block                                |
/// | agreement | exact with the scalar version                                                          |
ComponentSummary filter_components(std::span<float> p, int width, const Box& area,
                                   ThreadPool& pool);

/// Whether every pixel of the image's border is within 12 of 255 of its first one, in each channel.
bool has_flat_border(ConstImageView rgba);

/// Gives outlines on a flat background their coloured inside, which networks take for background
/// (decision 0281). I is the colour at a network pixel, 0..255, k B with k >= 0 the shade of the
/// border's colour B nearest to it, and |I - k B| / 24 - 1, limited to 0..1, how coloured it is.
/// A part is a connected set (four neighbours) of network pixels with p <= 0.9, and wide if all of
/// a square of 1/64 of the longer side in it has p < 0.1 and is coloured. In wide parts p becomes
/// the greater of p and how coloured a network pixel is; in none if one that touches the border is
/// wide. So the background, its shadows and the rims of openings stay as they are. Returns whether
/// there is a wide part and none touches the border; without, p is as it was.
///
/// | limit   |                                                                                        |
/// |---------|----------------------------------------------------------------------------------------|
/// | layout  | p: rows of `width` floats; planes R, G, B: the same of an image with a flat border     |
/// | threads | rows over the pool; same bytes for any number of threads                               |
/// | scratch | two values a network pixel, connected_components.h                                     |
bool restore_coloured_holes(std::span<float> p, int width, std::span<const float> planes,
                            ThreadPool& pool);

/// The network pixels of a p_width x p_height output that the pixels of `roi` in an image of width
/// x height depend on, including the support of the spline (cubic_taps.h).
Box network_area(const Box& roi, int width, int height, int p_width, int p_height);

}  // namespace cutout
