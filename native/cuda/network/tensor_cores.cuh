#pragma once

#include <cuda_fp16.h>

#include <cstdint>

/// The instructions of compute capability 8.0 that convolution.cuh is made of.
namespace cutout::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

/// The caches that a copy goes through: the first too where its neighbours read the same soon.
enum class Through { kL1, kL2 };

/// Copies 16 bytes to shared memory in the background, or zeros where not `there`.
template <Through kThrough>
__device__ __forceinline__ void copy_16(std::uint32_t to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
  if constexpr (kThrough == Through::kL1) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0));
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0));
  }
#endif
}

/// Ends a group of copies.
__device__ __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n");
#endif
}

/// Waits until at most `kLeft` groups of copies are on their way.
template <int kLeft>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft));
#endif
}

/// Four matrices of 8 x 8 float16, of which lane l names row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(std::uint32_t (&into)[4], std::uint32_t from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(from));
#endif
}

/// sums [16][8] += a [16][16] * b [16][8].
__device__ __forceinline__ void multiply(float (&sums)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

}  // namespace cutout::cuda
