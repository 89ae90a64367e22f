#pragma once

#include "low_precision/kernels.h"

namespace cutout::low_precision {

// The kernels for AMX, compiled with arrays instead of the processor's tiles: everything but the
// tile instructions themselves runs on a processor without them. They need AVX-512 and, the second,
// AVX-512 BF16.
void conv_emulated_amx(const ConvTask& task, int first_row, int last_row, int first_group,
                       int last_group);
void conv_emulated_amx_bf16(const ConvTask& task, int first_row, int last_row, int first_group,
                            int last_group);

}  // namespace cutout::low_precision
