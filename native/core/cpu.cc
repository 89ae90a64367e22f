#include "core/cpu.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/simd.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace cutout {

namespace {

// Dispatched as the hot loops are, so it returns the version that really runs.
#if defined(CUTOUT_CLONES)
__attribute__((target("default"))) const char* level() { return "baseline"; }
__attribute__((target("arch=x86-64-v3"))) const char* level() { return "x86-64-v3"; }
__attribute__((target("arch=x86-64-v4"))) const char* level() { return "x86-64-v4"; }
#else
const char* level() { return "baseline"; }
#endif

}  // namespace

const char* simd_level() { return level(); }

#if defined(__x86_64__)

namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

/// Zeros for a leaf that the processor does not have.
Registers cpuid(unsigned leaf, unsigned sub) {
  Registers r;
  if (__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool bit(unsigned value, int at) { return ((value >> at) & 1U) != 0; }

/// Register files that the system saves when it switches threads (XCR0); 0 without OSXSAVE.
unsigned saved_states() {
  if (!bit(cpuid(1, 0).c, 27)) return 0;  // OSXSAVE
  unsigned low = 0;
  unsigned high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  constexpr unsigned kYmm = 0x6;        // SSE, AVX
  constexpr unsigned kZmm = 0xe6;       // and opmask, upper halves, upper registers
  constexpr unsigned kTiles = 0x60000;  // tile configuration and data
  const unsigned saved = saved_states();
  const bool ymm = (saved & kYmm) == kYmm;
  const bool zmm = (saved & kZmm) == kZmm;
  const bool tiles = (saved & kTiles) == kTiles;
  const Registers seven = cpuid(7, 0);
  const Registers more = seven.a >= 1 ? cpuid(7, 1) : Registers{};
  const bool avx512 = zmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 28) &&
                      bit(seven.b, 30) && bit(seven.b, 31);
  std::vector<std::string> found;
  const bool bf16 = avx512 && bit(more.a, 5);
  if (tiles && bit(seven.d, 24) && bit(seven.d, 25)) found.emplace_back("amx_int8");
  if (avx512 && bit(seven.c, 11)) found.emplace_back("avx512_vnni");
  if (ymm && bit(more.a, 4)) found.emplace_back("avx_vnni");
  if (tiles && bit(seven.d, 24) && bit(seven.d, 22) && bf16) found.emplace_back("amx_bf16");
  if (bf16) found.emplace_back("avx512_bf16");
  if (avx512) found.emplace_back("avx512");
  if (ymm && bit(seven.b, 5)) found.emplace_back("avx2");
  return found;
}

#elif defined(__aarch64__) && defined(__linux__)

std::vector<std::string> instruction_sets() {
  std::vector<std::string> found;
  const unsigned long first = getauxval(AT_HWCAP);
#if defined(HWCAP2_I8MM)
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) found.emplace_back("i8mm");
#endif
  if ((first & HWCAP_ASIMDDP) != 0) found.emplace_back("asimddp");
  if ((first & HWCAP_ASIMD) != 0) found.emplace_back("asimd");
  return found;
}

#else

std::vector<std::string> instruction_sets() { return {}; }

#endif

bool has_dot_products() {
  constexpr std::array<std::string_view, 5> kDotProducts{"amx_int8", "avx512_vnni", "avx_vnni",
                                                         "i8mm", "asimddp"};
  return std::ranges::any_of(instruction_sets(), [&](const std::string& name) {
    return std::ranges::find(kDotProducts, name) != kDotProducts.end();
  });
}

}  // namespace cutout
