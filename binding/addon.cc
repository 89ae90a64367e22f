#include "module.h"

using cutout::binding::init;

NODE_API_MODULE(cutout, init)
