#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/image_view.h"
#include "core/thread_pool.h"
#include "matte/math/blocks.h"
#include "matte/math/mask_constraint.h"

namespace cutout {

/// A mask that says where the subject is. It shows the whole image, at any size: 255 is in the
/// subject, 0 is out of it, values between are undecided. Borrowed.
struct SubjectMask {
  std::span<const std::uint8_t> values;  // row after row without padding
  int width = 0;
  int height = 0;
};

/// The part of a width x height image that the network has to see: the smallest rectangle with
/// everything that is not out, with 1/8 of its longer side around it, clipped to the image. The
/// whole image where that is more than 7/10 of it, or where everything is out. With a `grid`, each
/// edge is moved outwards to the next of that many equal steps of the image's side, so that masks
/// that differ a little have the same view.
Box mask_view(const SubjectMask& mask, int width, int height, int grid = 0);

/// The view of `first` where it also serves `mask`, else that of `mask`. It serves where everything
/// of `mask` that is not out lies in it with 1/16 of its longer side around it, clipped to the
/// image, and its area is at most 4 times that of the view of `mask`.
Box shared_view(const SubjectMask& first, const SubjectMask& mask, int width, int height, int grid);

/// The blocks of a network's output of width x height, those at its end smaller.
struct BlockGrid {
  int side;  // of a block, in network pixels
  int columns;
  int rows;

  BlockGrid(int width, int height);
};

/// Returns, of one axis, between which of the mask's pixels each of `count` network pixels lies,
/// which cover `length` of `image` pixels from `begin` on.
std::vector<LinearTap> mask_taps(int begin, int length, int image, int mask, int count);

/// Returns, of one axis, between which of the blocks each of `count` network pixels lies.
std::vector<LinearTap> block_taps(int count, int side, int blocks);

/// A mask at the size of a network's output.
struct NetworkMask {
  std::vector<std::uint8_t> values;
  int width = 0;
  int height = 0;
};

/// The mask of an image of image_width x image_height at the size of a network's output, of width x
/// height, that covers `view`: interpolated linearly between the mask's pixel centres.
NetworkMask resize_mask(const SubjectMask& mask, const Box& view, int image_width, int image_height,
                        int width, int height, ThreadPool& pool);

/// Constrains a network's output by a mask, so that the mask says what the subject is and the
/// network how its edge is: replaces p by p'.
///
/// m is the mask at a network pixel. A network pixel is *in* where m >= 0.95, *out* where m <=
/// 0.05, else *undecided*. Sums are taken over blocks of k x k network pixels, k = max(1, longer
/// side / 256), and interpolated linearly between the centres of the blocks:
///
///   b = in / (in + out) of the network pixels up to 4 blocks away; 1/2 where there are neither
///   c = clamp((A - B - 1/4) / (1/2), 0, 1) with A, B the mean of p over the in and the out network
///       pixels up to 8 blocks away: whether the network draws an edge where the mask has one;
///       1 where there are none of either
///   s = mean of m over 5 x 5 network pixels
///   p' = clamp(c p + (1 - c) s, l, u)    in:        l = clamp(4 b - 3, 0, 1), u = 1
///                                        out:       l = 0, u = clamp(4 b, 0, 1)
///                                        undecided: l = 0, u = 1
///
/// So p' is 1 well inside and 0 well outside, follows the network beside the mask's edge where the
/// network agrees that there is one, and the mask where it does not.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | p: rows of mask.width floats, sides up to 8192                                         |
/// | values    | p 0..1                                                                                 |
/// | threads   | rows over the pool; same bytes for any number of threads                               |
/// | scratch   | 56 bytes for each block                                                                |
/// | agreement | within 1e-4 of the scalar version                                                      |
void constrain(std::span<float> p, const NetworkMask& mask, ThreadPool& pool);

/// Puts `constrained` back wherever something within 4 blocks is in: what the caller marked is
/// never removed as a component.
void restore_marked(std::span<float> p, std::span<const float> constrained, const NetworkMask& mask,
                    ThreadPool& pool);

}  // namespace cutout
