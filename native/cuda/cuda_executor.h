#pragma once

#include <cuda_runtime.h>

#include "cuda/launch.h"

namespace cutout::cuda {

template <int kPhase, typename Kernel>
__device__ __forceinline__ void run_phases(const Kernel& kernel, const Place& at,
                                           typename Kernel::Shared& shared) {
  kernel.template run<kPhase>(at, shared);
  if constexpr (kPhase + 1 < Kernel::kPhases) {
    __syncthreads();
    run_phases<kPhase + 1>(kernel, at, shared);
  }
}

template <typename Kernel>
__global__ void __launch_bounds__(kThreads<Kernel>) start(const Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  const Place at{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                 static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y)};
  run_phases<0>(kernel, at, shared);
}

/// Queues kernels on a stream of the current device.
class CudaExecutor {
 public:
  explicit CudaExecutor(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  template <Startable Kernel>
  void run(int blocks_x, int blocks_y, const Kernel& kernel) {
    if (result_ != cudaSuccess) return;
    const dim3 grid(static_cast<unsigned>(blocks_x), static_cast<unsigned>(blocks_y));
    const dim3 block(Kernel::kWidth, Kernel::kHeight);
    start<Kernel><<<grid, block, 0, stream_>>>(kernel);
    result_ = cudaGetLastError();
  }

  /// Of the first start that failed.
  [[nodiscard]] int result() const { return static_cast<int>(result_); }

 private:
  cudaStream_t stream_;
  cudaError_t result_ = cudaSuccess;
};

}  // namespace cutout::cuda
