#include <cstdio>
#include <cstdlib>
#include <cstring>

/// A stand-in for libcuda.so.1 for machines without a GPU: the functions that native/ort/driver.cc
/// calls. Answers come from the environment variable CUTOUT_TEST_CUDA, for example
/// "init=0 driver=13000 count=1 major=9 minor=0".
namespace {

int answer(const char* name, int otherwise) {
  const char* const text = std::getenv("CUTOUT_TEST_CUDA");
  if (text == nullptr) return otherwise;
  char pattern[32];
  std::snprintf(pattern, sizeof pattern, "%s=", name);
  const char* const found = std::strstr(text, pattern);
  return found == nullptr ? otherwise : std::atoi(found + std::strlen(pattern));
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuInit(unsigned) { return answer("init", 0); }
EXPORTED int cuDriverGetVersion(int* version) {
  *version = answer("driver", 13000);
  return 0;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = answer("count", 1);
  return 0;
}
EXPORTED int cuDeviceGet(int* device, int number) {
  *device = number;
  return answer("get", 0);
}
EXPORTED int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "Stand-in");
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? answer("major", 9) : answer("minor", 0);
  return 0;
}
EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{80} << 30;
  return 0;
}

/// Of the CUDA runtime, for native/ort/device_memory_budget.cc.
static int current = 7;
EXPORTED int cudaGetDevice(int* device) {
  *device = current;
  return 0;
}
EXPORTED int cudaSetDevice(int device) {
  current = device;
  return answer("set", 0);
}
EXPORTED int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = std::size_t{80} << 30;
  *free = static_cast<std::size_t>(answer("free", 64)) << 30;
  // Of a device alone, so that the test sees which one was asked.
  return current == answer("device", current) ? 0 : 101;
}
