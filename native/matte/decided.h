#pragma once

#include <span>

#include "core/image_view.h"
#include "core/thread_pool.h"

namespace cutout {

/// Whether a network has made up its mind: inside the area, at most 3 cells lie between 0.1 and 0.9
/// for 5 that are at least 1/2. Edges, hair and fur keep well below that; where a network loses its
/// subject at a size that is small for it, most of what it gives lies between
/// (docs/research/0098). False when no cell reaches 1/2.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | rows of `width` floats; the area lies inside, at least 1 x 1                           |
/// | values    | 0..1; a NaN counts as 0                                                                |
/// | threads   | rows over the pool; the same answer for any number of threads                          |
/// | scratch   | none                                                                                   |
/// | agreement | exact with the scalar version                                                          |
bool is_decided(std::span<const float> p, int width, const Box& area, ThreadPool& pool);

/// The definition, cell by cell.
bool is_decided_scalar(std::span<const float> p, int width, const Box& area);

}  // namespace cutout
