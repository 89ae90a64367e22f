#include "stress/cuda/host_table.h"

#include <cstring>
#include <new>

#include "cuda/make_table.h"

namespace cutout::test {

namespace {

template <Order kOrder>
cuda::Table table_of() {
  cuda::Table table = cuda::make_table<HostExecutor<kOrder>>();
  table.error_text = [](int error) {
    switch (error) {
      case 0:
        return "no error";
      case 2:
        return "out of memory";
      case 9:
        return "too many or no blocks";
      case 101:
        return "invalid device ordinal";
      default:
        return "unspecified launch failure";
    }
  };
  table.device_count = [](int* count) {
    *count = 1;
    return 0;
  };
  table.use_device = [](int number) { return number == 0 ? 0 : 101; };
  table.create_stream = [](void** stream) {
    *stream = nullptr;
    return 0;
  };
  table.destroy_stream = [](void*) { return 0; };
  table.allocate = [](std::size_t bytes, void** memory) {
    *memory = ::operator new(bytes, std::align_val_t{64}, std::nothrow);
    return *memory == nullptr ? 2 : 0;
  };
  table.release = [](void* memory) {
    ::operator delete(memory, std::align_val_t{64});
    return 0;
  };
  table.allocate_pinned = table.allocate;
  table.release_pinned = table.release;
  table.clear = [](void* memory, std::size_t bytes, void*) {
    std::memset(memory, 0, bytes);
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
  table.copy_on_device = [](void* to, const void* from, std::size_t bytes, void*) {
    std::memcpy(to, from, bytes);
    return 0;
  };
  table.synchronize = [](void*) { return 0; };
  return table;
}

}  // namespace

cuda::Table host_table(Order order) {
  switch (order) {
    case Order::kForwards:
      return table_of<Order::kForwards>();
    case Order::kBackwards:
      return table_of<Order::kBackwards>();
    case Order::kShuffled:
      break;
  }
  return table_of<Order::kShuffled>();
}

}  // namespace cutout::test
