#include "image/enlarge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/scan.h"
#include "core/simd.h"
#include "image/in_place.h"
#include "image/math/pixel.h"

namespace cutout {

namespace {

using Byte = std::uint8_t;

constexpr int kLanes = 8;  // pixels that are computed together
constexpr int kTaps = 4;
constexpr int kBefore = 2;  // repeated columns on each side
/// Pixels of a row, from 0 on, that are classified together: none, all or some are transparent. It
/// decides the last bits of a result.
constexpr int kCubicPiece = 64;

// Vector types as in filter.cc.
typedef float F32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef std::int32_t I32x8 __attribute__((vector_size(32), aligned(4), may_alias));

double cubic_at(double x) {
  const double a = std::abs(x);
  if (a < 1) return (1.5 * a - 2.5) * a * a + 1;
  if (a < 2) return ((-0.5 * a + 2.5) * a - 4) * a + 2;
  return 0;
}

/// Taps of one axis: `before`, the pixel at or before the centre of an output (-1 .. in - 1), and
/// the weights of pixels before - 1 .. before + 2. The last output is repeated to whole vectors.
struct CubicAxis {
  std::vector<int> before;
  std::array<std::vector<float>, kTaps> weights;

  CubicAxis(int in, int out) {
    const std::size_t padded = static_cast<std::size_t>(out) + kLanes - 1;
    before.resize(padded);
    for (std::vector<float>& tap : weights) tap.resize(padded);
    for (std::size_t i = 0; i < padded; ++i) {
      const double output = std::min(static_cast<double>(i), out - 1.0);
      const double centre = (output + 0.5) * in / out - 0.5;
      before[i] = static_cast<int>(std::floor(centre));
      for (int k = 0; k < kTaps; ++k) {
        weights[static_cast<std::size_t>(k)][i] =
            static_cast<float>(cubic_at(before[i] - 1 + k - centre));
      }
    }
  }
};

/// Kind of the alphas of some pixels, as bits.
enum Seen : unsigned char { kNothing = 0, kTransparent = 1, kOpaque = 2, kMixed = 3 };

using Rows = std::array<const Byte*, kTaps>;

/// The pixels of a column.
struct Column {
  std::uint32_t p[kTaps];
};

/// Calls each(i, column) for n pixels of four rows.
template <typename Each>
CUTOUT_INLINE void for_columns(const Rows& rows, int n, const Each& each) {
  const Byte* __restrict a = rows[0];
  const Byte* __restrict b = rows[1];
  const Byte* __restrict c = rows[2];
  const Byte* __restrict d = rows[3];
  for (int i = 0; i < n; ++i) {
    Column column;
    std::memcpy(&column.p[0], a + i * 4, 4);
    std::memcpy(&column.p[1], b + i * 4, 4);
    std::memcpy(&column.p[2], c + i * 4, 4);
    std::memcpy(&column.p[3], d + i * 4, 4);
    each(i, column);
  }
}

/// The sum of four weighted bytes at bit `shift`.
CUTOUT_INLINE float weighted(const Column& column, const float* w, int shift) {
  return w[0] * byte_of(column.p[0], shift) + w[1] * byte_of(column.p[1], shift) +
         w[2] * byte_of(column.p[2], shift) + w[3] * byte_of(column.p[3], shift);
}

/// Vertical pass over n opaque pixels: colours 0..255.
CUTOUT_SIMD void blend_opaque(const Rows& rows, const float* weights, int n, float* __restrict red,
                              float* __restrict green, float* __restrict blue) {
  const float w[kTaps] = {weights[0], weights[1], weights[2], weights[3]};
  for_columns(rows, n, [&](int i, const Column& column) {
    red[i] = clamp_to(weighted(column, w, 0), 255.0F);
    green[i] = clamp_to(weighted(column, w, 8), 255.0F);
    blue[i] = clamp_to(weighted(column, w, 16), 255.0F);
  });
}

/// Vertical pass over n pixels of any alpha: premultiplied results, alpha 0..255, colours 0..alpha.
CUTOUT_SIMD void blend_mixed(const Rows& rows, const float* weights, int n, float* __restrict red,
                             float* __restrict green, float* __restrict blue,
                             float* __restrict alpha) {
  const float w[kTaps] = {weights[0], weights[1], weights[2], weights[3]};
  for_columns(rows, n, [&](int i, const Column& column) {
    const float shares[kTaps] = {w[0] * byte_of(column.p[0], 24), w[1] * byte_of(column.p[1], 24),
                                 w[2] * byte_of(column.p[2], 24), w[3] * byte_of(column.p[3], 24)};
    const float total = shares[0] + shares[1] + shares[2] + shares[3];
    const float most = clamp_to(total, 255.0F);
    const float scale = 1.0F / (total > 255.0F ? total : 255.0F);
    red[i] = clamp_to(weighted(column, shares, 0) * scale, most);
    green[i] = clamp_to(weighted(column, shares, 8) * scale, most);
    blue[i] = clamp_to(weighted(column, shares, 16) * scale, most);
    alpha[i] = most;
  });
}

/// The horizontal pass over outputs 0 .. n - 1 (a last vector is written whole) to straight RGBA8.
/// `planes` (red, green, blue, alpha) start with the pixel kBefore columns before the image.
struct Span {
  const int* before;
  std::array<const float*, kTaps> weights;
  std::array<const float*, 4> planes;
  int n;
};

/// Weighted sum of four neighbours for each of eight outputs, whose neighbours are adjacent pixels.
[[gnu::always_inline]] inline void sum_taps(const float* from, const I32x8& at,
                                            const F32x8* weights, F32x8& sum) {
  sum = weights[0] * __builtin_shuffle(*reinterpret_cast<const F32x8*>(from), at);
  for (int k = 1; k < kTaps; ++k) {
    sum += weights[k] * __builtin_shuffle(*reinterpret_cast<const F32x8*>(from + k), at);
  }
}

/// Rounds and clamps to 0..255.
[[gnu::always_inline]] inline void to_bytes(const F32x8& value, I32x8& bytes) {
  const F32x8 zero = {};
  const F32x8 rounded = value + 0.5F;
  const F32x8 least = rounded > zero ? rounded : zero;
  bytes = __builtin_convertvector(least < zero + 255.0F ? least : zero + 255.0F, I32x8);
}

/// Opaque pixels have no plane of alpha.
template <bool kOpaque>
CUTOUT_INLINE void store(const Span& span, Byte* out) {
  const F32x8 zero = {};
  for (int i = 0; i < span.n; i += kLanes) {
    const int first = span.before[i];
    const I32x8 at = *reinterpret_cast<const I32x8*>(span.before + i) - first;
    F32x8 weights[kTaps];
    for (std::size_t k = 0; k < kTaps; ++k) {
      weights[k] = *reinterpret_cast<const F32x8*>(span.weights[k] + i);
    }
    F32x8 alpha = zero + 255.0F;
    if (!kOpaque) sum_taps(span.planes[3] + first + kBefore - 1, at, weights, alpha);
    I32x8 bytes;
    to_bytes(alpha, bytes);
    I32x8 pixels = bytes << 24;
    // Colours are scaled by the same factor as an alpha above 255.
    const F32x8 scale = alpha >= zero + 0.5F ? (zero + 255.0F) / alpha : zero;
    const I32x8 visible = alpha >= zero + 0.5F;
    for (std::size_t c = 0; c < 3; ++c) {
      F32x8 sum;
      sum_taps(span.planes[c] + first + kBefore - 1, at, weights, sum);
      to_bytes(sum * scale, bytes);
      pixels |= (bytes & visible) << static_cast<int>(8 * c);
    }
    std::memcpy(out + static_cast<std::ptrdiff_t>(i) * 4, &pixels, sizeof pixels);
  }
}

CUTOUT_SIMD void store_opaque(const Span& span, Byte* out) { store<true>(span, out); }
CUTOUT_SIMD void store_mixed(const Span& span, Byte* out) { store<false>(span, out); }

/// Length of a row's plane: the image's columns, the border, and padding for whole vectors.
std::size_t plane_size(int width) {
  return static_cast<std::size_t>(width) + 2 * kBefore + 2 * kLanes;
}

/// Computes rows of the result; one object a thread.
class RowMaker {
 public:
  RowMaker(ConstImageView image, const CubicAxis& rows, const CubicAxis& columns, int outputs)
      : image_(image),
        rows_(rows),
        columns_(columns),
        outputs_(outputs),
        seen_(static_cast<std::size_t>((image.width + kCubicPiece - 1) / kCubicPiece)) {
    for (std::vector<float>& plane : planes_) plane.resize(plane_size(image.width));
  }

  /// Row y of the result, whole vectors of pixels.
  void operator()(int y, Byte* out) {
    filter_rows(y);
    for (int x = 0, end = 0; x < outputs_; x = end) {
      const unsigned seen = seen_by(x, std::min(x + kCubicPiece, outputs_));
      do {
        end = std::min(end + kCubicPiece, outputs_);
      } while (end < outputs_ && seen_by(end, std::min(end + kCubicPiece, outputs_)) == seen);
      Byte* to = out + static_cast<std::ptrdiff_t>(x) * 4;
      Span span{columns_.before.data() + x, {}, {}, end - x};
      for (std::size_t k = 0; k < kTaps; ++k) span.weights[k] = columns_.weights[k].data() + x;
      for (std::size_t c = 0; c < 4; ++c) span.planes[c] = planes_[c].data();
      if (seen == kTransparent) {
        std::memset(to, 0, static_cast<std::size_t>(end - x) * 4);
      } else if (seen == kOpaque) {
        store_opaque(span, to);
      } else {
        store_mixed(span, to);
      }
    }
  }

 private:
  /// The vertical pass: fills planes_ and the kinds of their pieces.
  void filter_rows(int y) {
    const auto row = static_cast<std::size_t>(y);
    Rows lines{};
    std::array<float, kTaps> weights{};
    for (int k = 0; k < kTaps; ++k) {
      const auto tap = static_cast<std::size_t>(k);
      lines[tap] = image_.row(std::clamp(rows_.before[row] - 1 + k, 0, image_.height - 1));
      weights[tap] = rows_.weights[tap][row];
    }
    for (int x = 0; x < image_.width; x += kCubicPiece) {
      const int n = std::min(kCubicPiece, image_.width - x);
      AlphaRun seen;
      Rows at{};
      for (std::size_t k = 0; k < kTaps; ++k) {
        at[k] = lines[k] + static_cast<std::ptrdiff_t>(x) * 4;
        const AlphaRun of_row = scan_alpha(at[k], n);
        seen.all &= of_row.all;
        seen.any |= of_row.any;
      }
      std::array<float*, 4> to{};
      for (std::size_t c = 0; c < 4; ++c) to[c] = planes_[c].data() + kBefore + x;
      unsigned char& piece = seen_[static_cast<std::size_t>(x / kCubicPiece)];
      piece = seen.any == 0 ? kTransparent : seen.all == 255 ? kOpaque : kMixed;
      if (piece == kTransparent) {
        for (float* plane : to) std::fill_n(plane, n, 0.0F);
      } else if (piece == kOpaque) {
        blend_opaque(at, weights.data(), n, to[0], to[1], to[2]);
        std::fill_n(to[3], n, 255.0F);
      } else {
        blend_mixed(at, weights.data(), n, to[0], to[1], to[2], to[3]);
      }
    }
    for (std::vector<float>& plane : planes_) {
      float* const first = plane.data() + kBefore;
      float* const behind = first + image_.width;
      std::fill(plane.data(), first, *first);
      std::fill_n(behind, kBefore, behind[-1]);
    }
  }

  /// Kind of the pixels that outputs x .. end - 1 depend on.
  [[nodiscard]] unsigned seen_by(int x, int end) const {
    const int last = image_.width - 1;
    const int first = std::clamp(columns_.before[static_cast<std::size_t>(x)] - 1, 0, last);
    const int behind = std::clamp(columns_.before[static_cast<std::size_t>(end) - 1] + 2, 0, last);
    unsigned seen = kNothing;
    for (int piece = first / kCubicPiece; piece <= behind / kCubicPiece; ++piece) {
      seen |= seen_[static_cast<std::size_t>(piece)];
    }
    return seen;
  }

  ConstImageView image_;
  const CubicAxis& rows_;
  const CubicAxis& columns_;
  int outputs_;
  std::array<std::vector<float>, 4> planes_;
  std::vector<unsigned char> seen_;
};

}  // namespace

void enlarge_in_place(std::span<Byte> buffer, ConstImageView image, int to_width, int to_height,
                      ThreadPool& pool) {
  if (to_width == image.width && to_height == image.height) {
    pack_rows(image, buffer.data());
    return;
  }
  // From the end of the buffer the image can be read while the result grows from its front: behind
  // a row there is at least as much left of the result as of the image.
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * 4;
  Byte* const moved =
      buffer.data() + buffer.size() - static_cast<std::size_t>(image.height) * row_bytes;
  for (int y = image.height - 1; y >= 0; --y) {  // bottom to top: no row lies behind its place
    std::memmove(moved + static_cast<std::size_t>(y) * row_bytes, image.row(y), row_bytes);
  }
  image = {moved, image.width, image.height, static_cast<std::ptrdiff_t>(row_bytes)};
  const CubicAxis rows(image.height, to_height);
  const CubicAxis columns(image.width, to_width);
  write_in_place(buffer.data(), to_width, to_height, pool,
                 [&] { return RowMaker(image, rows, columns, to_width); });
}

}  // namespace cutout
