// Where the results of a run in batches lie, and what its plan takes.
#include "arena.h"
#include "batch_plan.h"
#include "batch_scratch.h"
#include "cache.h"

#include <algorithm>
#include <utility>

namespace twofold {

void BatchPlan::lay_out(const std::vector<Edge>& edges, const std::vector<Ref>& outputs) {
  const auto count = static_cast<uint32_t>(launches.size());
  std::vector<uint32_t> last(count);
  for (uint32_t k = 0; k < count; ++k) last[k] = k;
  for (const Edge& edge : edges) {
    uint32_t& found = last[static_cast<size_t>(home[edge.from])];
    found = std::max(found, static_cast<uint32_t>(home[edge.user]));
  }
  for (Ref ref : outputs) {
    const int32_t launch = ref >= 0 ? home[static_cast<size_t>(ref)] : -1;
    if (launch >= 0) last[static_cast<size_t>(launch)] = count;
  }
  std::vector<std::vector<int32_t>> uses(count);
  std::vector<int64_t> sizes(count);
  for (uint32_t k = 0; k < count; ++k) {
    sizes[k] = launches[k].nbytes();
    if (last[k] == count) continue;
    uses[k].push_back(static_cast<int32_t>(k));
    if (last[k] > k) uses[last[k]].push_back(static_cast<int32_t>(k));
  }
  ArenaPlan arena = plan_arena(uses, sizes, true);
  offsets = std::move(arena.offsets);
  arena_bytes = arena.bytes;
}

size_t BatchPlan::memory() const {
  return sizeof *this + memory_of(launches) + memory_of(members) + memory_of(operands) + memory_of(refs) + memory_of(first_ref) + memory_of(home) +
         memory_of(at) + memory_of(moving) + memory_of(merged) + memory_of(offsets) + memory_of(numbers_) + memory_of(waiting_);
}

}  // namespace twofold
