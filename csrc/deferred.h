// Deferred values: live values that a run does not compute; their calls are kept and rematerialised when the values are read.
#pragma once

#include <vector>

#include "recorder.h"

namespace twofold {

// Sets the calls of each deferred value, behind the live ones in `values`, on results and inputs.
void keep_deferred(const CachedTrace& cached, std::vector<ValueRef>& values, const std::vector<BufferRef>& results,
                  const std::vector<Leaf>& leaves, const std::vector<Provenance>& provenance);

}  // namespace twofold
