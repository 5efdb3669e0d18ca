// Values that a trace computes again where they are read late, as that takes less than to keep them in memory until then.
#pragma once

#include <cstdint>
#include <vector>

#include "trace.h"

namespace twofold {

// The entries of a trace in the order in which they run; one that is computed again stands there twice, the second time
// in front of the first that reads it then. Throws PythonError.
std::vector<uint32_t> steps_of(const CanonicalTrace& canonical);

}  // namespace twofold
