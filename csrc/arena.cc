#include "arena.h"

#include <algorithm>

namespace twofold {
namespace {

constexpr int64_t kAlign = 64;  // bytes; a cache line and the widest vector

int64_t rounded(int64_t size) { return std::max<int64_t>((size + kAlign - 1) / kAlign, 1) * kAlign; }

struct Hole {
  int64_t start, size;
};

// Best fit over sorted, disjoint free ranges.
class Arena {
 public:
  int64_t size = 0;

  int64_t take(int64_t wanted) {
    auto best = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->size >= wanted && (best == holes_.end() || hole->size < best->size)) best = hole;
    }
    if (best == holes_.end()) {
      if (holes_.empty() || holes_.back().start + holes_.back().size != size) {
        size += wanted;
        return size - wanted;
      }
      best = holes_.end() - 1;
      size += wanted - best->size;
      best->size = wanted;
    }
    int64_t start = best->start;
    best->start += wanted;
    best->size -= wanted;
    if (best->size == 0) holes_.erase(best);
    return start;
  }

  void give(int64_t start, int64_t freed) {
    auto next = std::lower_bound(holes_.begin(), holes_.end(), start, [](const Hole& hole, int64_t at) { return hole.start < at; });
    if (next != holes_.end() && next->start == start + freed) {
      freed += next->size;
      next = holes_.erase(next);
    }
    if (next != holes_.begin() && (next - 1)->start + (next - 1)->size == start) {
      (next - 1)->size += freed;
    } else {
      holes_.insert(next, Hole{start, freed});
    }
  }

 private:
  std::vector<Hole> holes_;
};

}  // namespace

ArenaPlan plan_arena(const std::vector<std::vector<int32_t>>& uses, const std::vector<int64_t>& sizes, bool reuse) {
  ArenaPlan plan;
  plan.offsets.assign(sizes.size(), -1);
  std::vector<size_t> last(sizes.size(), 0);
  for (size_t position = 0; position < uses.size(); ++position) {
    for (int32_t buffer : uses[position]) last[static_cast<size_t>(buffer)] = position;
  }
  Arena arena;
  for (size_t position = 0; position < uses.size(); ++position) {
    for (int32_t buffer : uses[position]) {
      auto k = static_cast<size_t>(buffer);
      if (plan.offsets[k] < 0) plan.offsets[k] = arena.take(rounded(sizes[k]));
    }
    if (!reuse) continue;
    for (int32_t buffer : uses[position]) {
      auto k = static_cast<size_t>(buffer);
      if (last[k] != position) continue;
      last[k] = SIZE_MAX;  // once, where an instruction uses a buffer twice
      arena.give(plan.offsets[k], rounded(sizes[k]));
    }
  }
  plan.bytes = arena.size;
  return plan;
}

}  // namespace twofold
