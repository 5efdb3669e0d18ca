// Rematerialisation: values that are recomputed before a late use, as that is cheaper than to keep them in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "trace.h"

namespace twofold {

// The entries of a trace in the order in which they run; one that is rematerialised occurs twice, the second time
// before the first late use. Throws PythonError.
std::vector<uint32_t> steps_of(const CanonicalTrace& canonical);

}  // namespace twofold
