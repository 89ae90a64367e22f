#include "cuda/library.h"

#include <dlfcn.h>

#include <filesystem>

namespace cutout::cuda {

std::string library_file() {
  Dl_info found{};
  const auto here = reinterpret_cast<const void*>(&library_file);
  if (dladdr(here, &found) == 0 || found.dli_fname == nullptr) return "libcutout_cuda.so";
  return std::filesystem::path(found.dli_fname).replace_filename("libcutout_cuda.so");
}

Status open_library(const std::string& file, const Table*& table) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return {Code::kProvider, "The library with the kernels for a GPU cannot be opened: " +
                                 std::string(dlerror()) + "."};
  }
  using TableFunction = const Table*();
  auto* const function = reinterpret_cast<TableFunction*>(dlsym(library, kTableFunction));
  if (function == nullptr) {
    return {Code::kProvider, file + " is not the library with the kernels for a GPU: it has no " +
                                 kTableFunction + "."};
  }
  const Table* const found = function();
  if (found->version != kTableVersion) {
    return {Code::kProvider, file + " has version " + std::to_string(found->version) +
                                 " of the kernels for a GPU; this program needs version " +
                                 std::to_string(kTableVersion) +
                                 ". Build both together (`npm run setup`)."};
  }
  table = found;
  return {};
}

}  // namespace cutout::cuda
