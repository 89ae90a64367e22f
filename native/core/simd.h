#pragma once

/// An attribute of a hot loop that compiles it for AVX-512, for AVX2 and for the baseline; the
/// version is chosen when the library is loaded. With -ffp-contract=off all three give the same
/// bytes; the kernel tests compare them in every call (test/native/levels.ts). Sanitizer builds and
/// other processors have the plain function only. Where it is defined, intrinsics of x86-64 are
/// known too.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CUTOUT_CLONES
#define CUTOUT_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CUTOUT_SIMD
#endif

/// An attribute of functions that a hot loop calls: one that is not inlined would be compiled for
/// the baseline and keep the loop from being vectorised.
#if defined(__GNUC__)
#define CUTOUT_INLINE inline __attribute__((always_inline))
#else
#define CUTOUT_INLINE inline
#endif

/// An attribute of plain functions of a pixel in `*/math/`, which loops of the CPU and kernels of a
/// GPU call (native/cuda): no vector types, no allocation, nothing of the standard library but
/// <cmath>.
#if defined(__CUDACC__)
#define CUTOUT_HD __host__ __device__ __forceinline__
#else
#define CUTOUT_HD CUTOUT_INLINE
#endif

namespace cutout {

/// The version of the hot loops that runs: "x86-64-v4", "x86-64-v3" or "baseline".
const char* simd_level();

}  // namespace cutout
