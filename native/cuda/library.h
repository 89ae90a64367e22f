#pragma once

#include <string>

#include "core/status.h"
#include "cuda/table.h"

namespace cutout::cuda {

/// Path of libcutout_cuda.so in the folder of the program or addon that this code is part of.
std::string library_file();

/// Opens libcutout_cuda.so, which stays open until the process ends. No GPU and no driver is needed
/// for that. kProvider: the file cannot be opened, is something else or is of another version.
Status open_library(const std::string& file, const Table*& table);

}  // namespace cutout::cuda
