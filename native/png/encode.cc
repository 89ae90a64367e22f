#include "png/encode.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/simd.h"
#include "png/checksum.h"
#include "png/deflate.h"
#include "png/filter.h"

namespace cutout {

namespace {

using Byte = std::uint8_t;
using Bytes = std::vector<Byte>;

/// Rows are filtered and compressed in strips of about this many bytes, which fit the cache; a 1 MP
/// image has 16 of them. Strips depend on the image alone, so that the file does not depend on the
/// machine.
constexpr std::size_t kStripBytes = std::size_t{256} << 10;
constexpr std::array<Byte, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::array<Byte, 2> kZlibHeader = {0x78, 0x9C};  // 32 KiB window, RFC 1950 section 2.2
/// The minimum effort for drawings where kDeepFrom or more was asked for: matches make up most of
/// their file.
constexpr int kDrawingEffort = 7;
constexpr int kDeepFrom = 3;
constexpr int kSampleRows = 8;  // one row of so many is examined for drawings at effort 1
constexpr std::string_view kProfileName = "ICC profile";

/// Division into strips of whole rows; the last strip may be shorter.
struct Strips {
  std::size_t pixel;      // bytes a pixel in the file
  std::size_t row;        // bytes a row in the stream, filter type included
  std::size_t per_strip;  // rows
  std::size_t count;
};

Strips plan_strips(int width, int height, bool alpha_only) {
  const std::size_t pixel = alpha_only ? 1 : 4;
  const std::size_t row = static_cast<std::size_t>(width) * pixel + 1;
  const std::size_t rows = static_cast<std::size_t>(height);
  const std::size_t per_strip = std::max<std::size_t>(kStripBytes / row, 1);
  return {pixel, row, per_strip, (rows + per_strip - 1) / per_strip};
}

void append_u32(Bytes& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<Byte>(value >> shift));
}

/// Appends space for the length, then the type; the data follow. finish_chunk() completes the
/// chunk.
void begin_chunk(Bytes& out, std::string_view type) {
  append_u32(out, 0);
  out.insert(out.end(), type.begin(), type.end());
}

/// `begin`: position at begin_chunk(). `crc`: of everything behind the length.
void finish_chunk(Bytes& out, std::size_t begin, std::uint32_t crc) {
  const auto size = static_cast<std::uint32_t>(out.size() - begin - 8);
  for (std::size_t i = 0; i < 4; ++i) out[begin + i] = static_cast<Byte>(size >> (24 - 8 * i));
  append_u32(out, crc);
}

void finish_chunk(Bytes& out, std::size_t begin) {
  finish_chunk(out, begin, png::crc32(std::span(out).subspan(begin + 4), 0));
}

/// Signature and everything before the pixels.
Bytes head_of(ConstImageView rgba, const PngOptions& options) {
  Bytes out(kSignature.begin(), kSignature.end());
  std::size_t begin = out.size();
  begin_chunk(out, "IHDR");
  append_u32(out, static_cast<std::uint32_t>(rgba.width));
  append_u32(out, static_cast<std::uint32_t>(rgba.height));
  const Byte colour_type = options.alpha_only ? 0 : 6;
  out.insert(out.end(), {8, colour_type, 0, 0, 0});
  finish_chunk(out, begin);
  if (!options.icc.empty()) {
    begin = out.size();
    begin_chunk(out, "iCCP");
    out.insert(out.end(), kProfileName.begin(), kProfileName.end());
    out.insert(out.end(), {0, 0});  // end of the name, compression method
    out.insert(out.end(), kZlibHeader.begin(), kZlibHeader.end());
    png::Deflater().compress(options.icc, {}, png::kMaxEffort, true, out);
    append_u32(out, png::adler32(options.icc, 1));
    finish_chunk(out, begin);
  }
  if (options.pixels_per_metre) {
    begin = out.size();
    begin_chunk(out, "pHYs");
    for (const std::uint32_t density : *options.pixels_per_metre) append_u32(out, density);
    out.push_back(1);  // the unit is the metre
    finish_chunk(out, begin);
  }
  return out;
}

/// Prefetches row y: rows are read from both ends, which the processor does not foresee.
void prefetch_row(ConstImageView rgba, int y) {
  const Byte* row = rgba.row(y);
  const std::size_t size = static_cast<std::size_t>(rgba.width) * 4;
  for (std::size_t i = 0; i < size; i += 64) __builtin_prefetch(row + i);
}

/// The rows of the file: the view's own, or their alpha gathered into a buffer.
class Rows {
 public:
  void open(ConstImageView rgba, bool alpha_only) {
    rgba_ = rgba;
    alpha_only_ = alpha_only;
    const std::size_t size = static_cast<std::size_t>(rgba.width) * (alpha_only ? 1 : 4);
    above_.assign(size, 0);
    if (alpha_only) row_.resize(size);
  }

  /// A row and the one above it.
  struct Pair {
    const Byte* row;
    const Byte* above;
  };
  /// Row y; rows are asked for in ascending order from `first` on.
  Pair at(int y, int first) {
    if (!alpha_only_) return {rgba_.row(y), y > 0 ? rgba_.row(y - 1) : above_.data()};
    if (y > first) {
      above_.swap(row_);
    } else if (y > 0) {
      gather(y - 1, above_);
    }
    gather(y, row_);
    return {row_.data(), above_.data()};
  }

 private:
  void gather(int y, Bytes& to) const {
    const Byte* from = rgba_.row(y) + 3;
    for (std::size_t x = 0; x < to.size(); ++x) to[x] = from[4 * x];
  }

  ConstImageView rgba_;
  bool alpha_only_ = false;
  Bytes row_;
  Bytes above_;  // zeros for the first row of the image
};

/// Number of pixels that are not transparent black, and of those that also equal neither the left
/// nor the upper pixel.
struct Variety {
  std::uint64_t pixels = 0;
  std::uint64_t fresh = 0;
};

CUTOUT_SIMD Variety row_variety(const Byte* row, const Byte* above, std::size_t pixels) {
  std::uint32_t shown = 0;
  std::uint32_t fresh = 0;
  for (std::size_t x = 1; x < pixels; ++x) {
    std::uint32_t here, left, up;
    std::memcpy(&here, row + 4 * x, 4);
    std::memcpy(&left, row + 4 * x - 4, 4);
    std::memcpy(&up, above + 4 * x, 4);
    shown += here != 0 ? 1 : 0;
    fresh += (here != 0) & (here != left) & (here != up) ? 1 : 0;
  }
  return {shown, fresh};
}

/// Whether the rows are those of a drawing or a screenshot: most pixels repeat a neighbour, and the
/// others differ much. Unfiltered rows compress better there, since filters hide repetitions (PNG
/// specification, section 12.7). `residuals` is the sum over the rows, each as filtered; one
/// in `step` is looked at.
bool is_drawing(ConstImageView rgba, int first, int end, int step, std::uint64_t residuals) {
  constexpr std::uint64_t kRepeated = 4;  // at most 1 / kRepeated of the pixels are fresh
  constexpr std::uint64_t kMuch = 32;  // minimum mean residual of a fresh pixel, over all channels
  Variety all;
  for (int y = first + 1; y < end; y += step) {
    const Variety row =
        row_variety(rgba.row(y), rgba.row(y - 1), static_cast<std::size_t>(rgba.width));
    all.pixels += row.pixels;
    all.fresh += row.fresh;
  }
  return all.fresh <= all.pixels / kRepeated &&
         residuals > kMuch * all.fresh * static_cast<std::uint64_t>(step);
}

/// The filters that are tried, in order of preference.
constexpr std::array kFilters = {png::Filter::kNone, png::Filter::kUp, png::Filter::kSub,
                                 png::Filter::kAverage, png::Filter::kPaeth};

/// The filter of a strip at effort 1: Average, which is the best one for most photographs, or one
/// that leaves less than half of its residuals in two rows, as in gradients. `trial` is
/// scratch for a row.
std::span<const png::Filter> fast_filter(ConstImageView rgba, int first, int end, Bytes& trial) {
  constexpr std::size_t kUsual = 3;
  static_assert(kFilters[kUsual] == png::Filter::kAverage);
  std::array<std::uint64_t, kFilters.size()> sums{};
  for (int y = first + (end - first + 3) / 4; y < end; y += std::max((end - first) / 2, 1)) {
    for (std::size_t i = 1; i < kFilters.size(); ++i) {
      sums[i] += png::filter_row(kFilters[i], rgba.row(y), rgba.row(y - 1),
                                 static_cast<std::size_t>(rgba.width) * 4, 4, trial.data());
    }
  }
  const auto best =
      static_cast<std::size_t>(std::min_element(sums.begin() + 1, sums.end()) - sums.begin());
  return std::span(kFilters).subspan(2 * sums[best] < sums[kUsual] ? best : kUsual, 1);
}

/// Filters one row of `size` bytes into `out` (`size` + 1 bytes, the filter type first) with that
/// of `filters` which leaves the smallest residuals, and returns their sum. `trial` is scratch for
/// a row.
std::uint64_t write_filtered(Rows::Pair rows, std::size_t size, std::size_t pixel,
                             std::span<const png::Filter> filters, Bytes& trial, Byte* out) {
  // Transparent margins are 0 with every filter; predictors at `begin` read zeros.
  const std::size_t begin = png::leading_zeros(rows.row, rows.above, size) / pixel * pixel;
  const std::size_t tail = png::trailing_zeros(rows.row + begin, rows.above + begin, size - begin);
  const std::size_t end =
      size - begin == tail ? begin : std::min(size, size - tail / pixel * pixel + pixel);
  Byte* residuals = out + 1;
  std::memset(residuals, 0, begin);
  std::memset(residuals + end, 0, size - end);

  // An empty row is not filtered, so that a run may cross it.
  out[0] = begin == end ? Byte{0} : static_cast<Byte>(filters[0]);
  const Byte* row = rows.row + begin;
  const Byte* above = rows.above + begin;
  std::uint64_t least =
      png::filter_row(filters[0], row, above, end - begin, pixel, residuals + begin);
  for (const png::Filter filter : filters.subspan(1)) {
    if (least == 0) break;
    const std::uint64_t sum = png::filter_row(filter, row, above, end - begin, pixel, trial.data());
    if (sum >= least) continue;
    least = sum;
    out[0] = static_cast<Byte>(filter);
    std::memcpy(residuals + begin, trial.data(), end - begin);
  }
  return least;
}

/// One IDAT chunk without its CRC, and its checksums.
struct Strip {
  Bytes chunk;
  std::uint32_t crc = 0;    // of the chunk so far
  std::uint32_t adler = 1;  // of the strip's filtered bytes
  std::uint64_t size = 0;   // of the filtered bytes
};

/// Memory for one strip at a time.
struct Scratch {
  png::Deflater deflater;
  Rows rows;
  Bytes filtered;
  Bytes trial;
};

void encode_strip(ConstImageView rgba, const PngOptions& options, const Strips& strips,
                  std::size_t index, Scratch& scratch, Strip& strip) {
  const int first = static_cast<int>(index * strips.per_strip);
  const bool last = index + 1 == strips.count;
  const int end = last ? rgba.height : first + static_cast<int>(strips.per_strip);
  scratch.filtered.resize(static_cast<std::size_t>(end - first) * strips.row);
  scratch.trial.resize(strips.row);
  scratch.rows.open(rgba, options.alpha_only);
  const auto filtered_row = [&](int y) {
    return scratch.filtered.data() + static_cast<std::size_t>(y - first) * strips.row;
  };
  const bool fast = options.effort <= png::kMinEffort;
  // An alpha alone is a quarter of the bytes.
  const std::span<const png::Filter> filters =
      fast && !options.alpha_only ? fast_filter(rgba, first, end, scratch.trial) : kFilters;
  std::uint64_t residuals = 0;
  for (int y = first; y < end; ++y) {
    prefetch_row(rgba, std::min(y + 1, rgba.height - 1));
    residuals += write_filtered(scratch.rows.at(y, first), strips.row - 1, strips.pixel, filters,
                                scratch.trial, filtered_row(y));
  }
  const bool drawing =
      !options.alpha_only && is_drawing(rgba, first, end, fast ? kSampleRows : 1, residuals);
  for (int y = first; drawing && y < end; ++y) {
    filtered_row(y)[0] = static_cast<Byte>(png::Filter::kNone);
    std::memcpy(filtered_row(y) + 1, rgba.row(y), strips.row - 1);
  }
  strip.size = scratch.filtered.size();
  strip.adler = png::adler32(scratch.filtered, 1);
  begin_chunk(strip.chunk, "IDAT");
  if (index == 0) strip.chunk.insert(strip.chunk.end(), kZlibHeader.begin(), kZlibHeader.end());
  const int effort = drawing && options.effort >= kDeepFrom
                         ? std::max(options.effort, kDrawingEffort)
                         : options.effort;
  scratch.deflater.compress(scratch.filtered, {strips.row, strips.pixel}, effort, last,
                            strip.chunk);
  strip.crc = png::crc32(std::span<const Byte>(strip.chunk).subspan(4), 0);
}

}  // namespace

std::vector<std::uint8_t> encode_png(ConstImageView rgba, const PngOptions& options,
                                     ThreadPool& pool) {
  const Strips plan = plan_strips(rgba.width, rgba.height, options.alpha_only);
  std::vector<Strip> strips(plan.count);
  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> idle;  // guarded by the mutex
  pool.for_each(plan.count, 1, [&](std::size_t index) {
    auto scratch = std::unique_ptr<Scratch>();
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        scratch = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (scratch == nullptr) scratch = std::make_unique<Scratch>();
    encode_strip(rgba, options, plan, index, *scratch, strips[index]);
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  });

  std::uint32_t adler = 1;
  std::size_t total = 0;
  for (const Strip& strip : strips) {
    adler = png::adler32_combine(adler, strip.adler, strip.size);
    total += strip.chunk.size() + 4;
  }
  Strip& last = strips.back();
  const std::size_t before = last.chunk.size();
  append_u32(last.chunk, adler);
  last.crc = png::crc32(std::span<const Byte>(last.chunk).subspan(before), last.crc);

  Bytes out = head_of(rgba, options);
  out.reserve(out.size() + total + 4 + 12);
  for (Strip& strip : strips) {
    finish_chunk(strip.chunk, 0, strip.crc);
    out.insert(out.end(), strip.chunk.begin(), strip.chunk.end());
    Bytes().swap(strip.chunk);
  }
  const std::size_t begin = out.size();
  begin_chunk(out, "IEND");
  finish_chunk(out, begin);
  return out;
}

}  // namespace cutout
