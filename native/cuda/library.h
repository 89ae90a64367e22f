#pragma once

#include <string>

#include "core/status.h"
#include "cuda/table.h"

namespace cutout::cuda {

/// Opens libcutout_cuda.so, which stays open until the process ends. No GPU and no driver is needed
/// for that. kRuntime: the file cannot be opened, is something else or is of another version.
Status open_library(const std::string& file, const Table*& table);

}  // namespace cutout::cuda
