// Exports native/png to the test runner. Bytes come in as Uint8Array and are returned as Buffer
// copies.
#include "scalar/png.h"

#include <chrono>
#include <string>

#include "core/thread_pool.h"
#include "png/checksum.h"
#include "png/deflate.h"
#include "png/encode.h"
#include "png/filter.h"
#include "png/huffman.h"
#include "registry.h"

namespace cutout::test {

namespace {

using Bytes = std::vector<std::uint8_t>;

std::span<const std::uint8_t> bytes_of(const Napi::Value& value) {
  const auto array = value.As<Napi::Uint8Array>();
  return {array.Data(), array.ByteLength()};
}

Napi::Value buffer_of(Napi::Env env, const Bytes& bytes) {
  return Napi::Buffer<std::uint8_t>::Copy(env, bytes.data(), bytes.size());
}

std::uint32_t u32(const Napi::Value& value) { return value.As<Napi::Number>().Uint32Value(); }
int i32(const Napi::Value& value) { return value.As<Napi::Number>().Int32Value(); }
bool flag(const Napi::Value& value) { return value.As<Napi::Boolean>().Value(); }

PngOptions options_of(const Napi::Object& from) {
  PngOptions options;
  options.alpha_only = flag(from.Get("alphaOnly"));
  options.effort = i32(from.Get("effort"));
  if (from.Has("icc")) {
    const auto icc = bytes_of(from.Get("icc"));
    options.icc.assign(icc.begin(), icc.end());
  }
  if (from.Has("pixelsPerMetre")) {
    const auto density = from.Get("pixelsPerMetre").As<Napi::Array>();
    options.pixels_per_metre = {u32(density.Get(0u)), u32(density.Get(1u))};
  }
  return options;
}

/// encodePng(pixels, width, height, stride, options, threads, stopped): in the pool of a job, which
/// was stopped or not. Throws what the job ends with.
Napi::Value EncodePng(const Napi::CallbackInfo& info) {
  const auto pixels = bytes_of(info[0]);
  const ConstImageView view{pixels.data(), i32(info[1]), i32(info[2]), i32(info[3])};
  const PngOptions options = options_of(info[4].As<Napi::Object>());
  ThreadPool threads(i32(info[5]));
  CancelToken token;
  if (flag(info[6])) token.stop(Code::kCancelled);
  ThreadPool pool(threads, token);
  Bytes out;
  const Status status = caught([&] {
    out = encode_png(view, options, pool);
    return Status();
  });
  if (!status.ok()) throw Napi::Error::New(info.Env(), status.message());
  return buffer_of(info.Env(), out);
}

/// timePng(pixels, width, height, options, threads, rounds): {ms: one figure a round, size}
Napi::Value TimePng(const Napi::CallbackInfo& info) {
  const auto pixels = bytes_of(info[0]);
  const int width = i32(info[1]);
  const ConstImageView view{pixels.data(), width, i32(info[2]), std::ptrdiff_t{4} * width};
  const PngOptions options = options_of(info[3].As<Napi::Object>());
  ThreadPool pool(i32(info[4]));
  auto times = Napi::Array::New(info.Env());
  std::size_t size = 0;
  for (std::uint32_t round = 0; round < u32(info[5]); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const Bytes out = encode_png(view, options, pool);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.Set(round, took.count());
    size = out.size();
  }
  auto result = Napi::Object::New(info.Env());
  result.Set("ms", times);
  result.Set("size", static_cast<double>(size));
  return result;
}

/// deflate(parts, effort, row, pixel): one stream of all the parts, by one Deflater.
Napi::Value Deflate(const Napi::CallbackInfo& info) {
  const auto parts = info[0].As<Napi::Array>();
  png::Deflater deflater;
  Bytes out;
  for (std::uint32_t i = 0; i < parts.Length(); ++i) {
    deflater.compress(bytes_of(parts.Get(i)), {u32(info[2]), u32(info[3])}, i32(info[1]),
                      i + 1 == parts.Length(), out);
  }
  return buffer_of(info.Env(), out);
}

Napi::Value DeflateBound(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(png::deflate_bound(u32(info[0]))));
}

/// crc32(bytes, crc, scalar), adler32(bytes, adler, scalar)
template <auto fast, auto scalar>
Napi::Value Checksum(const Napi::CallbackInfo& info) {
  const auto sum = flag(info[2]) ? scalar : fast;
  return Napi::Number::New(info.Env(), sum(bytes_of(info[0]), u32(info[1])));
}

Napi::Value AdlerCombine(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(),
                           png::adler32_combine(u32(info[0]), u32(info[1]), u32(info[2])));
}

/// filterRow(filter, row, above, pixel, scalar): {residuals, sum}
Napi::Value FilterRow(const Napi::CallbackInfo& info) {
  const auto row = bytes_of(info[1]);
  const auto above = bytes_of(info[2]);
  Bytes out(row.size());
  const auto filter = flag(info[4]) ? filter_row_scalar : png::filter_row;
  const std::uint64_t sum = filter(static_cast<png::Filter>(i32(info[0])), row.data(), above.data(),
                                   row.size(), u32(info[3]), out.data());
  auto result = Napi::Object::New(info.Env());
  result.Set("residuals", buffer_of(info.Env(), out));
  result.Set("sum", Napi::Number::New(info.Env(), static_cast<double>(sum)));
  return result;
}

/// zeroMargins(row, above): [leading, trailing]
Napi::Value ZeroMargins(const Napi::CallbackInfo& info) {
  const auto row = bytes_of(info[0]);
  const auto above = bytes_of(info[1]);
  auto result = Napi::Array::New(info.Env());
  result.Set(0u, static_cast<double>(png::leading_zeros(row.data(), above.data(), row.size())));
  result.Set(1u, static_cast<double>(png::trailing_zeros(row.data(), above.data(), row.size())));
  return result;
}

/// codeLengths(counts: Uint32Array, limit): lengths
Napi::Value CodeLengths(const Napi::CallbackInfo& info) {
  const auto counts = info[0].As<Napi::Uint32Array>();
  Bytes lengths(counts.ElementLength());
  png::code_lengths({counts.Data(), counts.ElementLength()}, i32(info[1]), lengths);
  return buffer_of(info.Env(), lengths);
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  auto png = Napi::Object::New(env);
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    png.Set(name, Napi::Function::New(env, function, name));
  };
  add("encodePng", EncodePng);
  add("timePng", TimePng);
  add("deflate", Deflate);
  add("deflateBound", DeflateBound);
  add("crc32", Checksum<png::crc32, crc32_scalar>);
  add("adler32", Checksum<png::adler32, adler32_scalar>);
  add("adler32Combine", AdlerCombine);
  add("filterRow", FilterRow);
  add("zeroMargins", ZeroMargins);
  add("codeLengths", CodeLengths);
  exports.Set("png", png);
});

}  // namespace cutout::test
