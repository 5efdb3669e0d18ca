// On which leaves values depend whose graph a backward pass has freed, so that a pass that needs that graph is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "value.h"

namespace twofold {

using SlotNumbers = std::vector<uint64_t>;  // of leaves, sorted

// What is left of a trace of which all or some calls were freed.
class FreedTrace {
 public:
  FreedTrace(uint64_t order, std::weak_ptr<const CachedTrace> trace, const std::vector<Leaf>& leaves);

  // The leaves on which an entry depends; where the trace is cached no more, all of the trace.
  SlotNumbers leaves_of(int32_t entry) const;

  const uint64_t order;  // as in SavedTrace

 private:
  std::weak_ptr<const CachedTrace> trace_;
  std::vector<uint64_t> numbers_;  // by input: of the slot of a leaf, else 0
  std::unordered_map<size_t, SlotNumbers> earlier_;  // by input that an earlier trace has computed: the leaves below
};

// Whether the value, whose graph is freed, may have been computed of another one.
bool may_depend_on(const Value* freed, Value* other);

}  // namespace twofold
