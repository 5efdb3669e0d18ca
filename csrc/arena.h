// Memory planning: offsets of the intermediate values of a program in one arena, by their live ranges.
#pragma once

#include <cstdint>
#include <vector>

namespace twofold {

struct ArenaPlan {
  std::vector<int64_t> offsets;  // by buffer; -1 for one that nothing uses
  int64_t bytes = 0;
};

// `uses` holds the buffers of each instruction in order. A buffer is live from the first instruction that uses it to the
// last, both included; no two live ones overlap unless `reuse` is false, where none do.
ArenaPlan plan_arena(const std::vector<std::vector<int32_t>>& uses, const std::vector<int64_t>& sizes, bool reuse);

}  // namespace twofold
