#include "png/deflate.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/simd.h"

namespace cutout::png {

namespace {

constexpr std::size_t kBlockTokens = 32768;
constexpr int kPairBits = 14;   // hash of two pixels; the table fits the first-level cache
constexpr int kChainBits = 15;  // hash of four bytes
constexpr std::size_t kChainBytes = 4;
constexpr std::size_t kPairBytes = 8;
/// The length up to which all bytes of a match enter the chains. Of longer matches only the last
/// do: the others repeat bytes that are in them.
constexpr std::size_t kInsertAll = 512;

struct ChainEffort {
  int depth;         // candidates compared
  std::size_t good;  // a match this long ends the search
  int ahead;         // later positions that are searched for a better match (lazy evaluation)
};

constexpr int kFirstChainEffort = 5;
constexpr std::array<ChainEffort, 5> kChainEfforts = {{
    {4, 32, 1},
    {12, 64, 1},
    {32, 128, 2},
    {128, 258, 2},
    {1024, 258, 3},
}};

std::uint64_t load64(const std::uint8_t* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint32_t load32(const std::uint8_t* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::size_t pair_hash(std::uint64_t value) {
  return static_cast<std::size_t>((value * 0x9E3779B97F4A7C15u) >> (64 - kPairBits));
}

/// Hash of kChainBytes bytes.
std::size_t chain_hash(const std::uint8_t* at) {
  return (load32(at) * 0x9E3779B1u) >> (32 - kChainBits);
}

/// Index in memory of the first byte that differs; `difference` is the XOR of two words, not 0.
std::size_t first_difference(std::uint64_t difference) {
  return static_cast<std::size_t>(std::countr_zero(difference)) / 8;
}

constexpr std::size_t kEqualStep = 192;

CUTOUT_SIMD bool step_equals(const std::uint8_t* a, const std::uint8_t* b) {
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < kEqualStep; ++i) {
    difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

void Deflater::compress(std::span<const std::uint8_t> in, RowLayout layout, int effort, bool last,
                        std::vector<std::uint8_t>& out) {
  in_ = in;
  effort_ = std::clamp(effort, kMinEffort, kMaxEffort);
  layout_ = layout.row != 0 ? layout : RowLayout{in.size(), 1};
  sampled_ = effort_ == kMinEffort && in.size() >= kSampledBlock;
  const std::size_t most = sampled_ ? kSampledGrowth * in.size() : deflate_bound(in.size());
  buffer_.resize(std::max(buffer_.size(), most + 8));
  writer_ = BitWriter(buffer_.data());
  sequences_.clear();
  block_begin_ = literal_begin_ = tokens_ = 0;
  if (effort_ != kMinEffort) costs_ = guess_costs(in);
  if (effort_ == kMinEffort) {
    parse_runs();
  } else if (effort_ < kFirstChainEffort) {
    latest_pair_.assign(std::size_t{1} << kPairBits, 0);
    parse_pixels();
  } else {
    latest_pair_.assign(std::size_t{1} << kPairBits, 0);
    head_.assign(std::size_t{1} << kChainBits, 0);
    previous_.resize(kWindow);
    parse_chains();
  }
  if (last || block_begin_ < in.size()) end_block(in.size(), last);
  if (!last) {
    writer_.put(0, 3);
    writer_.align();
    writer_.put(0xFFFF0000u, 32);
  }
  writer_.align();
  out.insert(out.end(), buffer_.data(), writer_.position());
}

/// Length of the match at `at` with the bytes `distance` back, at most `most` and not beyond the
/// end; the first `known` bytes are known to be equal.
std::size_t Deflater::extent(std::size_t at, std::size_t distance, std::size_t known,
                             std::size_t most) const {
  const std::uint8_t* here = in_.data() + at;
  const std::uint8_t* there = here - distance;
  const std::size_t size = std::min(most, in_.size() - at);
  std::size_t length = known;
  for (; length + 8 <= size; length += 8) {
    while (length >= kEqualStep && length + kEqualStep + 8 <= size &&
           step_equals(here + length, there + length)) {
      length += kEqualStep;
    }
    const std::uint64_t difference = load64(here + length) ^ load64(there + length);
    if (difference != 0) return length + first_difference(difference);
  }
  while (length < size && here[length] == there[length]) ++length;
  return length;
}

void Deflater::add_match(std::size_t at, std::size_t length, std::size_t distance) {
  auto literals = static_cast<std::uint32_t>(at - literal_begin_);
  literal_begin_ = at + length;
  tokens_ += literals;
  while (length > 0) {
    std::size_t piece = std::min(length, kMaxMatch);
    if (length - piece != 0 && length - piece < kMinMatch) piece = length - kMinMatch;
    sequences_.push_back(
        {literals, static_cast<std::uint16_t>(piece), static_cast<std::uint16_t>(distance)});
    literals = 0;
    length -= piece;
    ++tokens_;
  }
}

void Deflater::end_block(std::size_t end, bool last) {
  if (end > literal_begin_) {
    sequences_.push_back({static_cast<std::uint32_t>(end - literal_begin_), 0, 0});
  }
  write_block(in_.subspan(block_begin_, end - block_begin_), sequences_, sampled_, last, writer_,
              costs_);
  sequences_.clear();
  block_begin_ = literal_begin_ = end;
  tokens_ = 0;
}

namespace {

/// The starts of the pixels of rows that begin with a filter type, in ascending order.
class PixelStarts {
 public:
  explicit PixelStarts(const RowLayout& layout)
      : pixel_(layout.pixel),
        row_(layout.row),
        lead_(layout.row > 1 && layout.row % layout.pixel == 1 ? 1 : 0),
        row_begin_(lead_),
        row_end_(layout.row) {}

  [[nodiscard]] std::size_t first() const { return lead_; }
  /// The end of the row of the last one that was asked for.
  [[nodiscard]] std::size_t row_end() const { return row_end_; }
  /// The next one from a position on, which is not before those that were asked for.
  std::size_t from(std::size_t position) {
    if (position >= row_end_) {
      const std::size_t rows = (position - row_begin_ + lead_) / row_;
      row_begin_ += rows * row_;
      row_end_ = row_begin_ - lead_ + row_;
      position = std::max(position, row_begin_);
    }
    return row_begin_ + (position - row_begin_ + pixel_ - 1) / pixel_ * pixel_;
  }
  /// The same for a position that is a start, if it lies in the row of the last one.
  std::size_t from_start(std::size_t position) {
    return position < row_end_ ? position : from(position);
  }

 private:
  std::size_t pixel_;
  std::size_t row_;
  std::size_t lead_;  // of a row: the filter type
  std::size_t row_begin_;
  std::size_t row_end_;
};

}  // namespace

/// The first byte of a match at `at` when the equal bytes before it are added, as far as no
/// sequence covers them.
std::size_t Deflater::begin_of(std::size_t at, std::size_t distance) const {
  const std::uint8_t* bytes = in_.data();
  while (at > literal_begin_ && at > distance && bytes[at - 1] == bytes[at - 1 - distance]) --at;
  return at;
}

/// The distance of a repetition of the pixel before, which is there; 1 where all its bytes are
/// equal.
std::size_t Deflater::run_distance(std::size_t at) const {
  const std::uint8_t* here = in_.data() + at;
  const std::uint64_t pair = load64(here);
  return here[0] == here[-1] && pair == std::rotl(pair, 8) ? 1 : layout_.pixel;
}

/// Takes every repetition of the pixel before that is found at every fourth pixel.
void Deflater::parse_runs() {
  const std::uint8_t* bytes = in_.data();
  const std::size_t size = in_.size();
  const std::size_t pixel = layout_.pixel;
  PixelStarts starts(layout_);
  for (std::size_t at = starts.first(); at + kPairBytes <= size; at = starts.from_start(at)) {
    const std::size_t end = std::min(starts.row_end(), size - kPairBytes + 1);
    at = std::max(at, pixel + starts.first());
    while (at < end && load64(bytes + at) != load64(bytes + at - pixel)) at += 4 * pixel;
    if (at >= end) continue;
    const std::size_t distance = run_distance(at);
    const std::size_t begin = begin_of(at, distance);
    const std::size_t matched = at + extent(at, distance, kPairBytes, size);
    add_match(begin, matched - begin, distance);
    at = starts.from(matched);
  }
}

/// Searches at the starts of pixels only: for a repetition of the pixel before and at the latest
/// position with the same two pixels.
void Deflater::parse_pixels() {
  const std::uint8_t* bytes = in_.data();
  const std::size_t size = in_.size();
  const std::size_t pixel = layout_.pixel;
  const int skip_after = effort_ + 1;  // log2 of the misses after which pixels are skipped
  PixelStarts starts(layout_);
  std::size_t at = starts.first();
  std::size_t misses = 0;
  for (;; at = starts.from_start(at)) {
    if (at + kPairBytes > size) break;
    if (at - literal_begin_ + tokens_ >= kBlockTokens) end_block(at, false);
    const std::uint64_t pair = load64(bytes + at);
    std::size_t distance = 0;
    std::size_t length = 0;
    if (at >= pixel && pair == load64(bytes + at - pixel)) {
      distance = run_distance(at);
      length = extent(at, distance, kPairBytes, size);
    } else {
      std::uint32_t& latest = latest_pair_[pair_hash(pair)];
      const std::size_t candidate = latest;
      latest = static_cast<std::uint32_t>(at + 1);
      if (candidate != 0 && at + 1 - candidate <= kWindow &&
          load64(bytes + candidate - 1) == pair) {
        distance = at + 1 - candidate;
        // Limited, so that a run, whose distance is cheaper, may start after it.
        length = extent(at, distance, kPairBytes, kMaxMatch - pixel);
      }
    }
    if (length != 0) {
      const std::size_t begin = begin_of(at, distance);
      length += at - begin;
      const std::size_t first = std::min(length, kMaxMatch);
      int spare = -costs_.length[first] -
                  costs_.distance[distance_symbol(static_cast<std::uint32_t>(distance))];
      for (std::size_t i = 0; i < first && spare < 0; ++i)
        spare += costs_.literal[bytes[begin + i]];
      if (spare >= 0) {
        add_match(begin, length, distance);
        at = starts.from(begin + length);
        misses = 0;
        continue;
      }
    }
    at += pixel * (1 + std::min<std::size_t>(misses++ >> skip_after, 3));
  }
}

void Deflater::insert(std::size_t at) {
  const std::uint8_t* here = in_.data() + at;
  const auto position = static_cast<std::uint32_t>(at + 1);
  std::uint32_t& latest = head_[chain_hash(here)];
  previous_[at % kWindow] = latest;
  latest = position;
  if (in_.size() - at >= kPairBytes) latest_pair_[pair_hash(load64(here))] = position;
}

/// Fills literal_sum_[0..length] for the bytes from `at`.
void Deflater::literal_bits_until(std::size_t at, std::size_t length) {
  for (; literal_sum_size_ < length; ++literal_sum_size_) {
    literal_sum_[literal_sum_size_ + 1] =
        literal_sum_[literal_sum_size_] + costs_.literal[in_[at + literal_sum_size_]];
  }
}

/// The match at `at` that saves most bits; gain 0 when none saves any.
Deflater::Found Deflater::search(std::size_t at) {
  const ChainEffort effort = kChainEfforts[static_cast<std::size_t>(effort_ - kFirstChainEffort)];
  const std::uint8_t* here = in_.data() + at;
  const std::size_t most = std::min(kMaxMatch, in_.size() - at);
  const std::size_t good = std::min(effort.good, most);
  Found best;
  literal_sum_size_ = 0;
  /// Considers a match; returns whether it is long enough to end the search.
  const auto consider = [&](std::size_t distance, std::size_t known) {
    const std::size_t length = extent(at, distance, known, most);
    literal_bits_until(at, length);
    const int gain = static_cast<int>(literal_sum_[length]) - costs_.length[length] -
                     costs_.distance[distance_symbol(static_cast<std::uint32_t>(distance))];
    if (gain > best.gain) best = {length, distance, gain};
    return length >= good;
  };

  // A long match is often further down the chain than the depth.
  if (most >= kPairBytes) {
    const std::uint32_t pair = latest_pair_[pair_hash(load64(here))];
    const std::size_t distance = at + 1 - pair;
    if (pair != 0 && distance <= kWindow && load64(here - distance) == load64(here) &&
        consider(distance, kPairBytes)) {
      return best;
    }
  }
  std::uint32_t candidate = head_[chain_hash(here)];
  for (int left = effort.depth; candidate != 0 && left > 0; --left) {
    const std::size_t distance = at + 1 - candidate;
    if (distance > kWindow) break;
    const std::uint8_t* there = here - distance;
    const bool may_be_longer = best.length >= most || there[best.length] == here[best.length];
    if (may_be_longer && load32(there) == load32(here) && consider(distance, kChainBytes)) break;
    const std::uint32_t next = previous_[(candidate - 1) % kWindow];
    if (next >= candidate) break;  // the slot was overwritten by a newer position
    candidate = next;
  }
  return best;
}

void Deflater::parse_chains() {
  const ChainEffort effort = kChainEfforts[static_cast<std::size_t>(effort_ - kFirstChainEffort)];
  const std::size_t size = in_.size();
  std::size_t at = 0;
  std::size_t inserted = 0;  // positions before it are in the chains
  const auto insert_until = [&](std::size_t end) {
    end = std::min(end, size - std::min(size, kChainBytes - 1));
    for (; inserted < end; ++inserted) insert(inserted);
  };
  while (at + kChainBytes <= size) {
    if (at - literal_begin_ + tokens_ >= kBlockTokens) end_block(at, false);
    insert_until(at);
    Found found = search(at);
    if (found.gain <= 0) {
      ++at;
      continue;
    }
    for (int ahead = 1; ahead <= effort.ahead && found.length < effort.good; ++ahead) {
      const std::size_t later = at + static_cast<std::size_t>(ahead);
      if (later + kChainBytes > size) break;
      insert_until(later);
      const Found other = search(later);
      if (other.gain > found.gain) {
        at = later;
        found = other;
        ahead = 0;
      }
    }
    // A run is extended as far as the bytes repeat; other matches are not, so that a run, whose
    // distance is cheaper, may start after them.
    const bool run = found.length == kMaxMatch && found.distance <= layout_.pixel;
    const std::size_t length = run ? extent(at, found.distance, kMaxMatch, size) : found.length;
    add_match(at, length, found.distance);
    at += length;
    if (length > kInsertAll) inserted = std::max(inserted, at - kMaxMatch);
  }
}

}  // namespace cutout::png
