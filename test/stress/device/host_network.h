#pragma once

#include "cuda/network/table.h"

namespace cutout::test {

/// The operations of a network as plain loops on the host, from their definitions in
/// cuda/network/table.h; without graphs. They run at once.
cuda::NetworkTable host_network();

}  // namespace cutout::test
