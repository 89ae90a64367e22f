#include <cstdlib>

#include "stress/device/host_device.h"

/// A libcutout_cuda.so that computes on the host, for a server without a GPU.
/// CUTOUT_TEST_LOSE_DEVICE=N: device 1 stops working at its N-th call.
extern "C" __attribute__((visibility("default"))) const cutout::cuda::Table* cutout_cuda_table() {
  using namespace cutout::test;
  set_lateness(Lateness::kAnyTime);
  if (const char* const call = std::getenv("CUTOUT_TEST_LOSE_DEVICE"); call != nullptr)
    fail_at(Fault::kLost, std::atoi(call), 1);
  return &host_device();
}
