#pragma once

#include <cuda_runtime.h>

#include "cuda/kernel.h"

namespace cutout::cuda {

template <int kPhase, typename Kernel>
__device__ __forceinline__ void run_phases(const Kernel& kernel, const ThreadIndex& at,
                                           typename Kernel::Shared& shared) {
  kernel.template run<kPhase>(at, shared);
  if constexpr (kPhase + 1 < Kernel::kPhases) {
    __syncthreads();
    run_phases<kPhase + 1>(kernel, at, shared);
  }
}

template <typename Kernel>
__global__ void __launch_bounds__(kThreads<Kernel>) launch(const Kernel kernel, int blocks_x) {
  __shared__ typename Kernel::Shared shared;
  const auto number = static_cast<int>(blockIdx.x);
  const ThreadIndex at{number % blocks_x, number / blocks_x, static_cast<int>(threadIdx.x),
                       static_cast<int>(threadIdx.y)};
  run_phases<0>(kernel, at, shared);
}

/// Queues kernels on a stream of the current device.
class CudaExecutor {
 public:
  explicit CudaExecutor(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  template <Launchable Kernel>
  void run(int blocks_x, int blocks_y, const Kernel& kernel) {
    if (result_ != cudaSuccess) return;
    if (!fits_grid(blocks_x, blocks_y)) {
      result_ = cudaErrorInvalidConfiguration;
      return;
    }
    // In one direction, because the other ones take 65535 blocks only.
    const dim3 block(Kernel::kWidth, Kernel::kHeight);
    launch<Kernel>
        <<<static_cast<unsigned>(blocks_x * blocks_y), block, 0, stream_>>>(kernel, blocks_x);
    result_ = cudaGetLastError();
  }

  /// Returns the error of the first launch that failed; 0: none.
  [[nodiscard]] int result() const { return static_cast<int>(result_); }

 private:
  cudaStream_t stream_;
  cudaError_t result_ = cudaSuccess;
};

}  // namespace cutout::cuda
