// Forces a level of the hot loops (native/core/simd.h): the queries of the compiler's resolvers
// to their support library are answered here with CUTOUT_LEVEL, 1 (baseline) or 3 (AVX2),
// whatever the processor supports. For test addons only, linked to the same objects that ship.
namespace {

/// Part of the compiler's support library, as of version 11: zeros are the baseline.
constexpr int kWords = 8;

}  // namespace

extern "C" {

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN unsigned __cpu_features2[kWords];

struct ProcessorModel {
  unsigned vendor;
  unsigned type;
  unsigned subtype;
  unsigned features[1];
};
HIDDEN ProcessorModel __cpu_model;

#if CUTOUT_LEVEL == 3
static bool is_v3() {
  // The loop below must see what it has written: the compiler takes its own variable for another
  // one.
  __asm__ volatile("" ::: "memory");
  return __builtin_cpu_supports("x86-64-v3") != 0;
}
#endif

/// Called by resolvers while the addon is being loaded: only this file may be used.
HIDDEN int __cpu_indicator_init() {
#if CUTOUT_LEVEL == 3
  // The bit of a level has no public name: it is found as the one that makes the compiler see the
  // level.
  for (int bit = 0; bit < kWords * 32 && !is_v3(); ++bit) {
    __cpu_features2[bit / 32] = 1U << (bit % 32);
    if (!is_v3()) __cpu_features2[bit / 32] = 0;
  }
#endif
  return 0;
}

}  // extern "C"
