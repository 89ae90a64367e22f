#include "png/block.h"

#include <algorithm>
#include <numeric>

#include "core/simd.h"
#include "png/huffman.h"

namespace cutout::png {

namespace {

constexpr std::size_t kEndOfBlock = 256;
constexpr std::size_t kLengthSymbols = 288;  // 286 and 287 exist in the fixed code only
constexpr std::size_t kDistanceSymbols = 30;
constexpr int kLengthLimit = 14;  // four literals and 7 pending bits fit 64
constexpr int kDistanceLimit = 15;
constexpr std::size_t kMaxStored = 65535;

// RFC 1951 section 3.2.5.
constexpr std::array<std::uint16_t, 29> kLengthBase = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                       15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                       67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<std::uint8_t, 29> kLengthExtra = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

constexpr std::array<std::uint8_t, kMaxMatch + 1> make_length_index() {
  std::array<std::uint8_t, kMaxMatch + 1> index{};
  for (std::size_t i = 0; i < kLengthBase.size(); ++i) {
    for (std::size_t length = kLengthBase[i]; length <= kMaxMatch; ++length) {
      index[length] = static_cast<std::uint8_t>(i);
    }
  }
  return index;
}
/// Length to its symbol minus 257.
constexpr std::array<std::uint8_t, kMaxMatch + 1> kLengthIndex = make_length_index();

constexpr std::uint32_t distance_extra(std::uint32_t symbol) {
  return symbol < 4 ? 0 : symbol / 2 - 1;
}

struct Counts {
  std::array<std::uint32_t, kLengthSymbols> length{};
  std::array<std::uint32_t, kDistanceSymbols> distance{};
};

/// Of so many literals the first eight are counted in a sample.
constexpr std::uint32_t kSampleEvery = 128;
/// The least count of a sampled literal or of a length that occurs, as a fraction of the literals:
/// any literal may occur, and codes stay within kLengthLimit without being cut to it.
constexpr std::uint32_t kSampleLeast = 8192;

Counts count_symbols(const std::uint8_t* at, std::span<const Sequence> sequences, bool sampled) {
  // Eight tables, so that equal adjacent bytes, and equal channels of adjacent pixels, do not
  // depend on each other's increment.
  std::array<std::array<std::uint32_t, 256>, 8> literals{};
  const std::uint32_t step = sampled ? kSampleEvery : 8;
  Counts counts;
  std::uint64_t total = 0;
  for (const Sequence& sequence : sequences) {
    std::uint32_t left = sequence.literals;
    total += left;
    for (; left >= step; left -= step, at += step) {
      for (std::size_t i = 0; i < 8; ++i) ++literals[i][at[i]];
    }
    const std::uint32_t rest = sampled ? std::min(left, 8u) : left;
    for (std::uint32_t i = 0; i < rest; ++i) ++literals[i % 8][at[i]];
    at += left;
    if (sequence.length != 0) {
      ++counts.length[257u + kLengthIndex[sequence.length]];
      ++counts.distance[distance_symbol(sequence.distance)];
      at += sequence.length;
    }
  }
  for (const auto& table : literals) {
    for (std::size_t i = 0; i < 256; ++i) counts.length[i] += table[i];
  }
  counts.length[kEndOfBlock] = 1;
  if (!sampled) return counts;
  const std::uint64_t counted = std::accumulate(&counts.length[0], &counts.length[256], 0u);
  const auto least = static_cast<std::uint32_t>(total / kSampleLeast + 1);
  for (std::size_t i = 0; i < kLengthSymbols; ++i) {
    std::uint32_t& count = counts.length[i];
    if (i < 256 && count != 0) count = static_cast<std::uint32_t>(count * total / counted);
    if (i < 256 || count != 0) count = std::max(count, least);
  }
  return counts;
}

struct Code {
  std::array<std::uint8_t, kLengthSymbols> length{};
  std::array<std::uint8_t, kDistanceSymbols> distance{};
};

Code make_fixed_code() {
  Code code;
  for (std::size_t i = 0; i < kLengthSymbols; ++i) {
    code.length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  }
  code.distance.fill(5);
  return code;
}

std::uint64_t body_bits(const Counts& counts, const Code& code) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kLengthSymbols; ++i) {
    const std::uint32_t extra = i > kEndOfBlock && i < 286 ? kLengthExtra[i - 257] : 0u;
    bits += std::uint64_t{counts.length[i]} * (code.length[i] + extra);
  }
  for (std::uint32_t i = 0; i < kDistanceSymbols; ++i) {
    bits += std::uint64_t{counts.distance[i]} * (code.distance[i] + distance_extra(i));
  }
  return bits;
}

/// The lengths of both codes in the form of RFC 1951 section 3.2.7.
class CodeHeader {
 public:
  explicit CodeHeader(const Code& code) {
    lengths_ = trimmed(code.length, 257);
    distances_ = trimmed(code.distance, 1);
    std::array<std::uint8_t, kLengthSymbols + kDistanceSymbols> all;
    std::copy_n(code.length.begin(), lengths_, all.begin());
    std::copy_n(code.distance.begin(), distances_,
                all.begin() + static_cast<std::ptrdiff_t>(lengths_));
    run_lengths({all.data(), lengths_ + distances_});

    std::array<std::uint32_t, kSymbols> counts{};
    for (std::size_t i = 0; i < used_; ++i) ++counts[items_[i].symbol];
    code_lengths(counts, 7, code_);
    written_ = kSymbols;
    while (written_ > 4 && code_[kOrder[written_ - 1]] == 0) --written_;
    bits_ = 14 + 3 * written_;
    for (std::size_t i = 0; i < used_; ++i)
      bits_ += code_[items_[i].symbol] + extra_bits(items_[i].symbol);
  }

  [[nodiscard]] std::uint64_t bits() const { return bits_; }

  void write(BitWriter& out) const {
    std::array<std::uint16_t, kSymbols> codes;
    canonical_codes(code_, codes);
    out.put(lengths_ - 257, 5);
    out.put(distances_ - 1, 5);
    out.put(written_ - 4, 4);
    out.flush();
    for (std::size_t i = 0; i < written_; ++i) {
      out.put(code_[kOrder[i]], 3);
      out.flush();
    }
    for (std::size_t i = 0; i < used_; ++i) {
      const std::size_t symbol = items_[i].symbol;
      out.put(codes[symbol], code_[symbol]);
      out.put(items_[i].extra, extra_bits(symbol));
      out.flush();
    }
  }

 private:
  static constexpr std::size_t kSymbols = 19;
  static constexpr std::array<std::uint8_t, kSymbols> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
  struct Item {
    std::uint8_t symbol;
    std::uint8_t extra;
  };

  static constexpr unsigned extra_bits(std::size_t symbol) {
    return symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0;
  }

  template <std::size_t N>
  static std::size_t trimmed(const std::array<std::uint8_t, N>& lengths, std::size_t at_least) {
    std::size_t size = N;
    while (size > at_least && lengths[size - 1] == 0) --size;
    return size;
  }

  void add(std::size_t symbol, std::size_t extra) {
    items_[used_++] = {static_cast<std::uint8_t>(symbol), static_cast<std::uint8_t>(extra)};
  }

  void run_lengths(std::span<const std::uint8_t> all) {
    for (std::size_t i = 0; i < all.size();) {
      const std::uint8_t value = all[i];
      std::size_t run = 1;
      while (i + run < all.size() && all[i + run] == value) ++run;
      i += run;
      if (value != 0) {
        add(value, 0);
        --run;
      }
      while (run >= 3) {
        const std::size_t most = value != 0 ? 6 : 138;
        const std::size_t piece = std::min(run, most);
        if (value != 0) {
          add(16, piece - 3);
        } else if (piece <= 10) {
          add(17, piece - 3);
        } else {
          add(18, piece - 11);
        }
        run -= piece;
      }
      for (; run > 0; --run) add(value, 0);
    }
  }

  std::size_t lengths_ = 0;
  std::size_t distances_ = 0;
  std::size_t written_ = 0;
  std::size_t used_ = 0;
  std::uint64_t bits_ = 0;
  std::array<Item, kLengthSymbols + kDistanceSymbols> items_;
  std::array<std::uint8_t, kSymbols> code_{};
};

struct Entry {
  std::uint32_t bits;
  std::uint32_t count;
};

CUTOUT_SIMD void write_body(const std::uint8_t* at, std::span<const Sequence> sequences,
                            const Code& code, BitWriter& writer) {
  std::array<std::uint16_t, kLengthSymbols> length_codes;
  std::array<std::uint16_t, kDistanceSymbols> distance_codes;
  canonical_codes(code.length, length_codes);
  canonical_codes(code.distance, distance_codes);
  std::array<Entry, 256> literal;
  for (std::size_t i = 0; i < 256; ++i) literal[i] = {length_codes[i], code.length[i]};
  std::array<Entry, kMaxMatch + 1> match;
  for (std::size_t length = kMinMatch; length <= kMaxMatch; ++length) {
    const std::size_t index = kLengthIndex[length];
    const std::uint32_t bits = code.length[257 + index];
    const auto extra = static_cast<std::uint32_t>(length - kLengthBase[index]);
    match[length] = {length_codes[257 + index] | (extra << bits), bits + kLengthExtra[index]};
  }

  BitWriter out = writer;  // a local one stays in registers
  for (const Sequence& sequence : sequences) {
    std::uint32_t left = sequence.literals;
    for (; left >= 4; left -= 4, at += 4) {
      for (std::size_t i = 0; i < 4; ++i) out.put(literal[at[i]].bits, literal[at[i]].count);
      out.flush();
    }
    for (; left > 0; --left, ++at) out.put(literal[*at].bits, literal[*at].count);
    out.flush();
    if (sequence.length == 0) continue;
    at += sequence.length;
    out.put(match[sequence.length].bits, match[sequence.length].count);
    const std::uint32_t symbol = distance_symbol(sequence.distance);
    out.put(distance_codes[symbol], code.distance[symbol]);
    const std::uint32_t extra = distance_extra(symbol);
    out.put((sequence.distance - 1u) & ((1u << extra) - 1u), extra);
    out.flush();
  }
  out.put(length_codes[kEndOfBlock], code.length[kEndOfBlock]);
  out.flush();
  writer = out;
}

void write_stored(std::span<const std::uint8_t> bytes, bool last, BitWriter& out) {
  do {
    const std::size_t size = std::min(bytes.size(), kMaxStored);
    out.put(last && size == bytes.size() ? 1 : 0, 3);
    out.align();
    out.put(size | ((size ^ 0xFFFFu) << 16), 32);
    out.flush();
    out.bytes(bytes.data(), size);
    bytes = bytes.subspan(size);
  } while (!bytes.empty());
}

std::uint64_t stored_bits(std::size_t size, unsigned pending) {
  // Only the first piece may start inside a byte.
  const std::uint64_t pieces = std::max<std::uint64_t>((size + kMaxStored - 1) / kMaxStored, 1);
  const std::uint64_t first = (pending + 3 + 7) / 8 * 8 - pending;
  return first + (pieces - 1) * 8 + pieces * 32 + std::uint64_t{size} * 8;
}

/// Costs of symbols that did not occur: about those of the rarest that did.
constexpr std::uint8_t kUnusedLiteral = 12;
constexpr std::uint8_t kUnusedMatch = 9;

void fill_costs(const Code& code, BitCosts& costs) {
  const auto used = [](std::uint8_t bits, std::uint8_t otherwise) {
    return bits != 0 ? bits : otherwise;
  };
  for (std::size_t i = 0; i < 256; ++i) costs.literal[i] = used(code.length[i], kUnusedLiteral);
  for (std::size_t length = kMinMatch; length <= kMaxMatch; ++length) {
    const std::size_t index = kLengthIndex[length];
    costs.length[length] = static_cast<std::uint8_t>(used(code.length[257 + index], kUnusedMatch) +
                                                     kLengthExtra[index]);
  }
  for (std::uint32_t i = 0; i < kDistanceSymbols; ++i) {
    costs.distance[i] =
        static_cast<std::uint8_t>(used(code.distance[i], kUnusedMatch) + distance_extra(i));
  }
}

}  // namespace

BitCosts guess_costs(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kPiece = 64;
  constexpr std::size_t kEvery = 1024;
  Counts counts;
  std::uint32_t total = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kEvery) {
    const std::size_t end = std::min(at + kPiece, bytes.size());
    for (std::size_t i = at; i < end; ++i) ++counts.length[bytes[i]];
    total += static_cast<std::uint32_t>(end - at);
  }
  // Matches of all lengths and distances are assumed equally frequent.
  for (std::size_t i = 257; i < 286; ++i) counts.length[i] = total / 256 + 1;
  counts.distance.fill(1);
  Code code;
  code_lengths(counts.length, kLengthLimit, code.length);
  code_lengths(counts.distance, kDistanceLimit, code.distance);
  BitCosts costs{};
  fill_costs(code, costs);
  return costs;
}

void write_block(std::span<const std::uint8_t> bytes, std::span<const Sequence> sequences,
                 bool sampled, bool last, BitWriter& out, BitCosts& costs) {
  const Counts counts = count_symbols(bytes.data(), sequences, sampled);
  Code dynamic;
  code_lengths(counts.length, kLengthLimit, dynamic.length);
  code_lengths(counts.distance, kDistanceLimit, dynamic.distance);
  fill_costs(dynamic, costs);
  const CodeHeader header(dynamic);
  const std::uint64_t dynamic_bits = 3 + header.bits() + body_bits(counts, dynamic);
  const Code fixed = make_fixed_code();
  const std::uint64_t fixed_bits = 3 + body_bits(counts, fixed);

  const std::uint64_t stored = stored_bits(bytes.size(), out.pending());
  const BitWriter begin = out;
  if (stored > std::min(dynamic_bits, fixed_bits)) {
    const bool use_fixed = fixed_bits <= dynamic_bits;
    out.put((last ? 1u : 0u) | (use_fixed ? 2u : 4u), 3);
    out.flush();
    if (!use_fixed) header.write(out);
    write_body(bytes.data(), sequences, use_fixed ? fixed : dynamic, out);
    if (!sampled || out.bits_since(begin) <= stored) return;
    out = begin;  // the sample was not representative
  }
  write_stored(bytes, last, out);
}

}  // namespace cutout::png
