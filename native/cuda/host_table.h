#pragma once

#include <cstring>
#include <new>

#include "cuda/host_executor.h"
#include "cuda/make_table.h"

namespace cutout::cuda {

/// The kernels on the calling thread, in the process's memory: what tests run without a GPU.
template <Order kOrder>
Table host_table() {
  Table table = make_table<HostExecutor<kOrder>>();
  table.error_text = [](int error) {
    return error == 0 ? "no error" : error == 9 ? "too many or no blocks" : "out of memory";
  };
  table.device_count = [](int* count) {
    *count = 1;
    return 0;
  };
  table.allocate = [](std::size_t bytes, void** memory) {
    *memory = ::operator new(bytes, std::align_val_t{64}, std::nothrow);
    return *memory == nullptr ? 2 : 0;
  };
  table.release = [](void* memory) {
    ::operator delete(memory, std::align_val_t{64});
    return 0;
  };
  table.copy_to_device = [](void* device, const void* host, std::size_t bytes, void*) {
    std::memcpy(device, host, bytes);
    return 0;
  };
  table.copy_to_host = [](void* host, const void* device, std::size_t bytes, void*) {
    std::memcpy(host, device, bytes);
    return 0;
  };
  table.synchronize = [](void*) { return 0; };
  return table;
}

}  // namespace cutout::cuda
