#include "core/simd.h"

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

}  // namespace cutout
