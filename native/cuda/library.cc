#include "cuda/library.h"

#include <dlfcn.h>

namespace cutout::cuda {

Status open_library(const std::string& file, const Table*& table) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return {Code::kRuntime, "The library with the kernels for a GPU cannot be opened: " +
                                std::string(dlerror()) + "."};
  }
  using TableFunction = const Table*();
  auto* const function = reinterpret_cast<TableFunction*>(dlsym(library, kTableFunction));
  if (function == nullptr) {
    return {Code::kRuntime, file + " is not the library with the kernels for a GPU: it has no " +
                                kTableFunction + "."};
  }
  const Table* const found = function();
  if (found->version != kTableVersion) {
    return {Code::kRuntime, file + " has version " + std::to_string(found->version) +
                                " of the kernels for a GPU; this program needs version " +
                                std::to_string(kTableVersion) + ". Build both together."};
  }
  table = found;
  return {};
}

}  // namespace cutout::cuda
