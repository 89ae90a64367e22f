// libcutout_cuda.so: the kernels on a GPU. Compiled by nvcc, with CUDA's runtime inside; opened
// with dlopen (library.h).
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "cuda/cuda_executor.h"
#include "cuda/make_table.h"
#include "cuda/network/library.cuh"

namespace cutout::cuda {

namespace {

int as_int(cudaError_t error) { return static_cast<int>(error); }

/// Threads that wait for a GPU sleep instead of spinning: decoding and encoding need the cores.
cudaError_t use_device(int number) {
  const cudaError_t error = cudaSetDevice(number);
  if (error != cudaSuccess) return error;
  static std::atomic<std::uint64_t> set = 0;  // a bit for each of the first 64 GPUs
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  // Where another library has made the context already, it may keep its own way of waiting.
  if ((set.fetch_or(bit) & bit) == 0 &&
      cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess) {
    (void)cudaGetLastError();
  }
  return cudaSuccess;
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
  table.destroy_stream = [](void* stream) { return as_int(cudaStreamDestroy(as_stream(stream))); };
  table.allocate_pinned = [](std::size_t bytes, void** memory) {
    return recoverable(cudaMallocHost(memory, bytes));
  };
  table.release_pinned = [](void* memory) { return as_int(cudaFreeHost(memory)); };
  table.clear = [](void* memory, std::size_t bytes, void* stream) {
    return as_int(cudaMemsetAsync(memory, 0, bytes, as_stream(stream)));
  };
  table.copy_on_device = [](void* to, const void* from, std::size_t bytes, void* stream) {
    return as_int(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, as_stream(stream)));
  };
  table.allocate = [](std::size_t bytes, void** memory) {
    return recoverable(cudaMalloc(memory, bytes));
  };
  table.release = [](void* memory) { return as_int(cudaFree(memory)); };
  table.copy_to_device = [](void* device, const void* host, std::size_t bytes, void* stream) {
    return as_int(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, as_stream(stream)));
  };
  table.copy_to_host = [](void* host, const void* device, std::size_t bytes, void* stream) {
    return as_int(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, as_stream(stream)));
  };
  table.synchronize = [](void* stream) { return as_int(cudaStreamSynchronize(as_stream(stream))); };
  table.network = network_table();
  return table;
}

}  // namespace

}  // namespace cutout::cuda

extern "C" __attribute__((visibility("default"))) const cutout::cuda::Table* cutout_cuda_table() {
  static const cutout::cuda::Table table = cutout::cuda::whole_table();
  return &table;
}
