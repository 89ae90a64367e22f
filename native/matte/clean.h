#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// What clean_alpha changed.
struct CleanSummary {
  int islands = 0;  // parts that became background
  int dents = 0;    // parts that became foreground

  bool operator==(const CleanSummary&) const = default;
};

/// Takes away what the network saw where no subject is, and closes what it doubted inside one, at
/// the network's size and in place. Only the cells of `area` are looked at and changed. An island
/// is a connected part (eight neighbours) of those that are not background, p >= 0.02; its mass is
/// the sum of p. Lengths are parts of the area's longer side, so that they mean the same on the
/// stretched picture at every size of the network.
///
/// Subjects are the islands that reach p = 1/2 and have at least 1/200 of the greatest mass of
/// such an island: two people, a pair of shoes, a ball beside a child. They always stay. Another
/// island becomes 0 unless it is
///
/// | kind  | what                                                 | stays within this of a subject |
/// |-------|------------------------------------------------------|--------------------------------|
/// | piece | sure somewhere, at least 1/5000 of the largest       | 1/8                            |
/// | wisp  | reaches 0.1: hair, rope, web, a foot behind a shadow | 1/16                           |
/// | haze  | any other                                            | never                          |
///
/// A dent is a connected part (four neighbours) of the cells that are not sure foreground,
/// p <= 0.98. It becomes 1 when it never falls below 0.9 and has at most 1/50 of the cells of the
/// island around it. What falls lower is kept: openings (the crook of an arm, spokes), gaps in fur,
/// glass and veils (docs/research/0096).
///
/// Nothing changes when no cell is sure: there is no subject then, and the caller says so.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | rows of `width` floats; the area lies inside, at least 1 x 1, sides up to 8192         |
/// | values    | 0..1 (to_probability)                                                                  |
/// | distance  | between blocks of side/256 (at least 1) cells, diagonal steps count as one: a length   |
/// |           | is met up to one block                                                                 |
/// | threads   | rows over the pool; same bytes and summary for any number of threads                   |
/// | scratch   | regions.h, one 16-bit value a block                                                    |
/// | agreement | exact with the scalar version                                                          |
CleanSummary clean_alpha(std::span<float> p, int width, const Box& area, ThreadPool& pool);

/// The definition, cell by cell: flood fill, and the distance of every cell to every subject.
CleanSummary clean_alpha_scalar(std::span<float> p, int width, const Box& area);

/// The cells of a map of p_width x p_height that decide the pixels of `roi` in a picture of width x
/// height, the reach of the spline (apply.h) included.
Box cells_of(const Box& roi, int width, int height, int p_width, int p_height);

}  // namespace cutout
