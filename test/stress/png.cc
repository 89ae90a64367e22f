// png_stress [rounds]: random images through the PNG encoder and a plain decoder, for builds with
// sanitizers (address and undefined: every read and write; thread: the strips and `stop`). Not part
// of the test runner: sanitizers want a process of their own. Ends with 1 at the first wrong pixel.
#include "scalar/png.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/thread_pool.h"
#include "png/encode.h"
#include "png/filter.h"

namespace {

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "png_stress: %s\n", what);
  std::exit(1);
}

/// A slow, plain inflate (RFC 1951): bit by bit, canonical codes by counting.
class Inflate {
 public:
  explicit Inflate(const Bytes& in) : in_(in) {}

  Bytes run() {
    for (bool last = false; !last;) {
      last = bits(1) != 0;
      switch (bits(2)) {
        case 0:
          stored();
          break;
        case 1:
          fixed();
          break;
        case 2:
          dynamic();
          break;
        default:
          fail("block type 3");
      }
    }
    return std::move(out_);
  }

  [[nodiscard]] std::size_t bytes_read() const { return (at_ + 7) / 8; }

 private:
  struct Code {
    std::array<std::uint32_t, 16> count{};
    std::vector<std::uint32_t> symbols;

    Code(const std::uint8_t* lengths, std::size_t size) {
      for (std::uint32_t length = 1; length < 16; ++length) {
        for (std::uint32_t symbol = 0; symbol < size; ++symbol) {
          if (lengths[symbol] != length) continue;
          ++count[length];
          symbols.push_back(symbol);
        }
      }
    }
  };

  std::uint32_t bits(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 >= in_.size()) fail("stream too short");
      value |= ((in_[at_ / 8] >> (at_ % 8)) & 1u) << i;
    }
    return value;
  }

  std::uint32_t symbol(const Code& code) {
    std::uint32_t value = 0;
    std::uint32_t first = 0;
    std::uint32_t index = 0;
    for (std::uint32_t length = 1; length < 16; ++length) {
      value |= bits(1);
      if (value - first < code.count[length]) return code.symbols[index + value - first];
      index += code.count[length];
      first = (first + code.count[length]) << 1;
      value <<= 1;
    }
    fail("no such code");
  }

  void stored() {
    at_ = (at_ + 7) / 8 * 8;
    const std::uint32_t size = bits(16);
    if (bits(16) != (size ^ 0xFFFFu)) fail("stored length");
    for (std::uint32_t i = 0; i < size; ++i) out_.push_back(static_cast<std::uint8_t>(bits(8)));
  }

  void fixed() {
    std::array<std::uint8_t, 288> lengths;
    for (std::size_t i = 0; i < 288; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    std::array<std::uint8_t, 30> distances;
    distances.fill(5);
    body(Code(lengths.data(), 288), Code(distances.data(), 30));
  }

  void dynamic() {
    static constexpr std::array<std::uint8_t, 19> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                            11, 4,  12, 3, 13, 2, 14, 1, 15};
    const std::size_t literals = bits(5) + 257;
    const std::size_t distances = bits(5) + 1;
    const std::size_t given = bits(4) + 4;
    std::array<std::uint8_t, 19> meta{};
    for (std::size_t i = 0; i < given; ++i) meta[kOrder[i]] = static_cast<std::uint8_t>(bits(3));
    const Code code(meta.data(), meta.size());
    Bytes lengths;
    while (lengths.size() < literals + distances) {
      const std::uint32_t value = symbol(code);
      if (value < 16) {
        lengths.push_back(static_cast<std::uint8_t>(value));
        continue;
      }
      if (value == 16 && lengths.empty()) fail("nothing to repeat");
      const std::uint8_t repeated = value == 16 ? lengths.back() : std::uint8_t{0};
      const std::size_t times = value == 16   ? 3 + bits(2)
                                : value == 17 ? 3 + bits(3)
                                              : 11 + bits(7);
      lengths.insert(lengths.end(), times, repeated);
    }
    if (lengths.size() != literals + distances) fail("too many code lengths");
    body(Code(lengths.data(), literals), Code(lengths.data() + literals, distances));
  }

  void body(const Code& literals, const Code& distances) {
    static constexpr std::array<std::uint32_t, 29> kBase = {
        3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
        31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    for (;;) {
      const std::uint32_t value = symbol(literals);
      if (value == 256) return;
      if (value < 256) {
        out_.push_back(static_cast<std::uint8_t>(value));
        continue;
      }
      const std::uint32_t index = value - 257;
      if (index >= kBase.size()) fail("length symbol");
      std::uint32_t length = kBase[index];
      if (index >= 8 && index < 28) length += bits(index / 4 - 1);
      const std::uint32_t far = symbol(distances);
      if (far >= 30) fail("distance symbol");
      std::uint32_t distance = far + 1;
      if (far >= 4) distance = ((2 + (far & 1u)) << (far / 2 - 1)) + bits(far / 2 - 1) + 1;
      if (distance > out_.size()) fail("distance before the start");
      for (std::uint32_t i = 0; i < length; ++i) out_.push_back(out_[out_.size() - distance]);
    }
  }

  const Bytes& in_;
  std::size_t at_ = 0;  // in bits
  Bytes out_;
};

std::uint32_t u32(const Bytes& file, std::size_t at) {
  return std::uint32_t{file[at]} << 24 | std::uint32_t{file[at + 1]} << 16 |
         std::uint32_t{file[at + 2]} << 8 | file[at + 3];
}

/// The rows of the file, unfiltered.
Bytes decode(const Bytes& file, std::size_t row, std::size_t pixel) {
  Bytes stream;
  for (std::size_t at = 8; at < file.size(); at += u32(file, at) + 12) {
    const bool data = file[at + 4] == 'I' && file[at + 5] == 'D';
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at) + 8;
    if (data)
      stream.insert(stream.end(), begin, begin + static_cast<std::ptrdiff_t>(u32(file, at)));
  }
  stream.erase(stream.begin(), stream.begin() + 2);
  Inflate inflate(stream);
  Bytes rows = inflate.run();
  if (inflate.bytes_read() + 4 != stream.size()) fail("bytes behind the stream");
  for (std::size_t at = 0; at < rows.size(); at += row + 1) {
    std::uint8_t* here = rows.data() + at + 1;
    for (std::size_t x = 0; x < row; ++x) {
      const int left = x >= pixel ? here[x - pixel] : 0;
      const int above = at > 0 ? *(here + x - row - 1) : 0;
      const int corner = at > 0 && x >= pixel ? *(here + x - row - 1 - pixel) : 0;
      const int guess = left + above - corner;
      const int a = std::abs(guess - left);
      const int b = std::abs(guess - above);
      const int c = std::abs(guess - corner);
      const std::array<int, 5> predicted = {0, left, above, (left + above) / 2,
                                            a <= b && a <= c ? left : (b <= c ? above : corner)};
      here[x] = static_cast<std::uint8_t>(here[x] + predicted.at(here[-1]));
    }
  }
  return rows;
}

/// Noise, runs, copies of other places and soft shades, in patches.
Bytes image(Random& random, std::size_t size) {
  Bytes pixels(size);
  for (std::size_t at = 0; at < size;) {
    const std::size_t length = std::min<std::size_t>(1 + random() % 3000, size - at);
    const std::uint32_t kind = random() % 4;
    const std::size_t back = at == 0 ? 0 : 1 + random() % at;
    const auto value = static_cast<std::uint8_t>(random() % 3 * 127);
    for (std::size_t i = 0; i < length; ++i, ++at) {
      if (kind == 0) pixels[at] = static_cast<std::uint8_t>(random());
      if (kind == 1) pixels[at] = value;
      if (kind == 2) pixels[at] = back != 0 ? pixels[at - back] : value;
      if (kind == 3) pixels[at] = static_cast<std::uint8_t>(at / 16 + random() % 5);
    }
  }
  return pixels;
}

void round(Random& random, cutout::ThreadPool& pool) {
  const int width =
      static_cast<int>(random() % 8 == 0 ? 1 + random() % 70'000 : 1 + random() % 400);
  const int height = 1 + static_cast<int>(random() % (600'000 / static_cast<unsigned>(width) + 1));
  const std::size_t stride = static_cast<std::size_t>(width) * 4 + random() % 9;
  // Exactly as long as the view says: a read behind the last pixel is found.
  const Bytes pixels = image(
      random, stride * static_cast<std::size_t>(height - 1) + static_cast<std::size_t>(width) * 4);
  const cutout::ConstImageView view{pixels.data(), width, height,
                                    static_cast<std::ptrdiff_t>(stride)};
  const Bytes icc = image(random, random() % 2 * (random() % 5000));
  cutout::PngOptions options;
  options.alpha_only = random() % 3 == 0;
  options.effort = 1 + static_cast<int>(random() % 9);
  options.icc = icc;
  if (random() % 2 == 0) options.pixels_per_metre = {2835, static_cast<std::uint32_t>(random())};

  const Bytes file = cutout::encode_png(view, options, pool);
  if (file.size() > cutout::test::png_bound(width, height, options)) fail("larger than the bound");

  const std::size_t pixel = options.alpha_only ? 1 : 4;
  const std::size_t row = static_cast<std::size_t>(width) * pixel;
  const Bytes rows = decode(file, row, pixel);
  if (rows.size() != (row + 1) * static_cast<std::size_t>(height)) fail("wrong number of rows");
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* found = rows.data() + (row + 1) * static_cast<std::size_t>(y) + 1;
    for (std::size_t x = 0; x < row; ++x) {
      if (found[x] != view.row(y)[options.alpha_only ? 4 * x + 3 : x]) fail("wrong pixel");
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 200;
  Random random(20261121);
  for (int threads : {0, 1, 3}) {
    cutout::ThreadPool pool(threads);
    for (int i = 0; i < rounds; ++i) round(random, pool);
  }
  std::printf("png_stress: %d images, all right\n", 3 * rounds);
  return 0;
}
