#pragma once

#include "low_precision/kernels.h"

namespace cutout::low_precision {

// The kernels for AMX, compiled with arrays instead of the processor's tiles: everything but the
// tile instructions themselves runs on a processor without them. They need AVX-512 and, the second,
// AVX-512 BF16.
Kernel conv_emulated_amx();
Kernel conv_emulated_amx_bf16();

}  // namespace cutout::low_precision
