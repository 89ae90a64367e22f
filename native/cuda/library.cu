// libcutout_cuda.so: the kernels on a GPU. Compiled by nvcc, with CUDA's runtime inside; opened
// with dlopen (library.h).
#include <cuda_runtime.h>

#include "cuda/cuda_executor.h"
#include "cuda/make_table.h"

namespace cutout::cuda {

namespace {

int as_int(cudaError_t error) { return static_cast<int>(error); }

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

Table whole_table() {
  Table table = make_table<CudaExecutor>();
  table.error_text = [](int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); };
  table.device_count = [](int* count) { return as_int(cudaGetDeviceCount(count)); };
  table.use_device = [](int number) { return as_int(cudaSetDevice(number)); };
  table.create_stream = [](void** stream) {
    cudaStream_t made = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    *stream = made;
    return as_int(error);
  };
  table.destroy_stream = [](void* stream) { return as_int(cudaStreamDestroy(as_stream(stream))); };
  table.allocate_pinned = [](std::size_t bytes, void** memory) {
    return as_int(cudaMallocHost(memory, bytes));
  };
  table.release_pinned = [](void* memory) { return as_int(cudaFreeHost(memory)); };
  table.clear = [](void* memory, std::size_t bytes, void* stream) {
    return as_int(cudaMemsetAsync(memory, 0, bytes, as_stream(stream)));
  };
  table.copy_on_device = [](void* to, const void* from, std::size_t bytes, void* stream) {
    return as_int(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, as_stream(stream)));
  };
  table.allocate = [](std::size_t bytes, void** memory) {
    return as_int(cudaMalloc(memory, bytes));
  };
  table.release = [](void* memory) { return as_int(cudaFree(memory)); };
  table.copy_to_device = [](void* device, const void* host, std::size_t bytes, void* stream) {
    return as_int(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, as_stream(stream)));
  };
  table.copy_to_host = [](void* host, const void* device, std::size_t bytes, void* stream) {
    return as_int(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, as_stream(stream)));
  };
  table.synchronize = [](void* stream) { return as_int(cudaStreamSynchronize(as_stream(stream))); };
  return table;
}

}  // namespace

}  // namespace cutout::cuda

extern "C" __attribute__((visibility("default"))) const cutout::cuda::Table* cutout_cuda_table() {
  static const cutout::cuda::Table table = cutout::cuda::whole_table();
  return &table;
}
