#include "ort/runtime.h"

#include <dlfcn.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#include "core/large_memory.h"
#include "ort/runtime_log.h"
#include "ort/session.h"

namespace cutout::ort {

namespace {

std::mutex mutex;
std::string opened_path;
std::string opened_version;

// Instead of on stderr, where the library writes by itself.
void ORT_API_CALL keep_log(void*, OrtLoggingLevel level, const char*, const char*, const char*,
                           const char* message) {
  log_line(static_cast<int>(level), message);
}

/// LargeMemory as an OrtAllocator.
struct Allocator : OrtAllocator {
  Allocator() : OrtAllocator{} {
    version = ORT_API_VERSION;
    // Throws, as ONNX Runtime's own allocators do: its kernels do not check for null. Its C
    // functions turn the exception into a status.
    Alloc = [](OrtAllocator*, std::size_t bytes) {
      void* const memory = large_memory().allocate(bytes);
      if (memory == nullptr) throw std::bad_alloc();
      return memory;
    };
    Free = [](OrtAllocator*, void* pointer) { large_memory().free(pointer); };
    Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return static_cast<const Allocator*>(self)->info;
    };
    Reserve = Alloc;
  }
  const Ort::MemoryInfo info = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
};

}  // namespace

Status open_runtime(const std::string& path) {
  const std::lock_guard lock(mutex);
  if (!opened_path.empty()) {
    if (opened_path == path) return {};
    return {Code::kRuntime,
            "ONNX Runtime is already open from '" + opened_path + "', a process can use one."};
  }
  // Since 1.29 the published libraries for Linux send telemetry and keep a device id in the home
  // folder. Only this variable, read when the environment is created, turns all of it off.
  if (setenv("ORT_DISABLE_TELEMETRY", "1", 1) != 0) {
    return {Code::kRuntime, "The telemetry of ONNX Runtime could not be turned off."};
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {Code::kRuntime, "The ONNX Runtime library could not be opened: " +
                                std::string(reason != nullptr ? reason : path.c_str())};
  }
  // Never closed: its threads and static objects live until the process ends.
  using GetApiBase = const OrtApiBase* (*)();
  const auto get_base = reinterpret_cast<GetApiBase>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) {
    return {Code::kRuntime, "'" + path + "' is no ONNX Runtime library: OrtGetApiBase is missing."};
  }
  const OrtApiBase* base = get_base();
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    return {Code::kRuntime, "'" + path + "' is ONNX Runtime " + base->GetVersionString() +
                                ", which is older than the headers of this addon (API " +
                                std::to_string(ORT_API_VERSION) + ")."};
  }
  Ort::InitApi(api);
  opened_path = path;
  opened_version = base->GetVersionString();
  return {};
}

std::string runtime_version() {
  const std::lock_guard lock(mutex);
  return opened_version;
}

#ifdef __GLIBC__
namespace {

/// Whether malloc() is that of glibc, and not of a library that replaces it.
bool is_glibc_malloc() {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == nullptr) return false;
  const bool same = dlsym(libc, "malloc") == dlsym(RTLD_DEFAULT, "malloc");
  dlclose(libc);
  return same;
}

}  // namespace
#endif

void trim_heap() {
#ifdef __GLIBC__
  // Where another allocator replaces it, glibc's was never initialised: malloc_trim() would do that
  // now, without a lock against other threads, and then walk its empty lists.
  static const bool trims = is_glibc_malloc();
  if (trims) malloc_trim(0);
#endif
}

void release_memory() {
  large_memory().release_cached();
  tensor_memory().release_cached();
  trim_heap();
}

std::size_t kept_bytes() { return large_memory().cached_bytes() + tensor_memory().cached_bytes(); }

Ort::Env& environment() {
  static Ort::Env* const instance = [] {
    auto made = std::make_unique<Ort::Env>(ORT_LOGGING_LEVEL_WARNING, "cutout", &keep_log, nullptr);
    // For libraries that do not read the variable set in open_runtime().
    made->DisableTelemetryEvents();
    static Allocator allocator;
    Ort::ThrowOnError(Ort::GetApi().RegisterAllocator(*made, &allocator));
    return made.release();
  }();
  return *instance;
}

}  // namespace cutout::ort
