// Living values that a run leaves out: their calls are kept instead, for whoever asks for the values.
#pragma once

#include <vector>

#include "recorder.h"

namespace twofold {

// Gives each value that was deferred, behind the living ones in `values`, its calls on results and leaves.
void keep_deferred(const CachedTrace& cached, std::vector<ValueRef>& values, const std::vector<BufferRef>& results,
                  const std::vector<Leaf>& leaves, const std::vector<Provenance>& provenance);

}  // namespace twofold
