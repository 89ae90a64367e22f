// libcutout_cuda.so: the kernels on a GPU. Compiled by nvcc, with CUDA's runtime inside; opened
// with dlopen (library.h).
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/make_table.h"
#include "cuda/network/library.cuh"

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

namespace {

/// Threads that wait for a GPU sleep instead of spinning: decoding and encoding need the cores.
cudaError_t use_device(int number) {
  const cudaError_t error = cudaSetDevice(number);
  if (error != cudaSuccess) return error;
  static std::atomic<std::uint64_t> set = 0;  // a bit for each of the first 64 GPUs
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  if ((set.fetch_or(bit) & bit) == 0)
    (void)recoverable(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  return cudaSuccess;
}

template <cudaMemcpyKind kKind>
int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  return recoverable(cudaMemcpyAsync(to, from, bytes, kKind, as_stream(stream)));
}

Table whole_table() {
  Table table = make_table<CudaExecutor>();
  table.error_text = [](int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); };
  table.device_count = [](int* count) { return recoverable(cudaGetDeviceCount(count)); };
  table.use_device = [](int number) { return recoverable(use_device(number)); };
  table.create_stream = [](void** stream) {
    cudaStream_t made = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    *stream = made;
    return recoverable(error);
  };
  table.destroy_stream = [](void* stream) {
    return recoverable(cudaStreamDestroy(as_stream(stream)));
  };
  table.allocate_pinned = [](std::size_t bytes, void** memory) {
    return recoverable(cudaMallocHost(memory, bytes));
  };
  table.release_pinned = [](void* memory) { return recoverable(cudaFreeHost(memory)); };
  table.clear = [](void* memory, std::size_t bytes, void* stream) {
    return recoverable(cudaMemsetAsync(memory, 0, bytes, as_stream(stream)));
  };
  table.copy_on_device = copy<cudaMemcpyDeviceToDevice>;
  table.allocate = [](std::size_t bytes, void** memory) {
    return recoverable(cudaMalloc(memory, bytes));
  };
  table.release = [](void* memory) { return recoverable(cudaFree(memory)); };
  table.copy_to_device = copy<cudaMemcpyHostToDevice>;
  table.copy_to_host = copy<cudaMemcpyDeviceToHost>;
  table.synchronize = [](void* stream) {
    return recoverable(cudaStreamSynchronize(as_stream(stream)));
  };
  table.network = network_table();
  return table;
}

}  // namespace

}  // namespace cutout::cuda

extern "C" __attribute__((visibility("default"))) const cutout::cuda::Table* cutout_cuda_table() {
  static const cutout::cuda::Table table = cutout::cuda::whole_table();
  return &table;
}
