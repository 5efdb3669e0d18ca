#include "freed_trace.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "recorder.h"
#include "tensor.h"

namespace twofold {
namespace {

SlotNumbers sorted(SlotNumbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// The inputs of a trace from which gradients of the marked entries come.
std::vector<size_t> inputs_below(const Trace& trace, std::vector<char>& marked) {
  std::vector<size_t> found;
  for (size_t i = marked.size(); i-- > 0;) {
    const Entry& entry = trace.entries[i];
    for (uint32_t k = 0; marked[i] && entry.requires_grad() && k < entry.count; ++k) {
      const Ref ref = trace.inputs(entry)[k];
      if (!entry.flows_to(k)) continue;
      if (ref < 0) found.push_back(static_cast<size_t>(~ref));
      else marked[static_cast<size_t>(ref)] = 1;
    }
  }
  return found;
}

// The leaves on which a value that was computed depends.
SlotNumbers leaves_below(Value* value) {
  SlotNumbers found;
  std::map<uint64_t, std::pair<std::shared_ptr<SavedTrace>, std::vector<char>>, std::greater<>> marked;  // by order of the traces
  const auto reach = [&](Value* one) {
    if (!one || !one->requires_grad) return;
    if (one->is_leaf) {
      found.push_back(slot_of(one)->number);
    } else if (one->freed) {
      const SlotNumbers below = one->freed->leaves_of(one->index);
      found.insert(found.end(), below.begin(), below.end());
    } else if (one->saved) {
      auto& [saved, entries] = marked[one->saved->order];
      saved = one->saved;
      entries.resize(saved->trace->trace.entries.size());
      entries[static_cast<size_t>(one->index)] = 1;
    }
  };
  reach(value);
  while (!marked.empty()) {
    auto [saved, entries] = std::move(marked.begin()->second);
    marked.erase(marked.begin());
    for (const size_t k : inputs_below(saved->trace->trace, entries)) reach(saved->leaves[k].value.get());
  }
  return sorted(std::move(found));
}

// Where a value was recorded, in the order of all traces; leaves come first.
std::pair<uint64_t, int32_t> position_of(const Value* value) {
  if (value->is_leaf) return {0, 0};
  if (value->pending) return {UINT64_MAX, value->index};
  return {value->saved ? value->saved->order : value->freed ? value->freed->order : 0, value->index};
}

}  // namespace

FreedTrace::FreedTrace(uint64_t order, std::weak_ptr<const CachedTrace> trace, const std::vector<Leaf>& leaves)
    : order(order), trace_(std::move(trace)), numbers_(leaves.size(), 0) {
  for (size_t k = 0; k < leaves.size(); ++k) {
    Value* value = leaves[k].value.get();
    if (!value || !value->requires_grad) continue;
    if (value->is_leaf) numbers_[k] = slot_of(value)->number;
    else earlier_.emplace(k, leaves_below(value));
  }
}

SlotNumbers FreedTrace::leaves_of(int32_t entry) const {
  SlotNumbers found;
  const auto take = [&](size_t k) {
    if (numbers_[k]) found.push_back(numbers_[k]);
    const auto earlier = earlier_.find(k);
    if (earlier != earlier_.end()) found.insert(found.end(), earlier->second.begin(), earlier->second.end());
  };
  if (const std::shared_ptr<const CachedTrace> cached = trace_.lock()) {
    std::vector<char> marked(cached->trace.entries.size(), 0);
    marked[static_cast<size_t>(entry)] = 1;
    for (const size_t k : inputs_below(cached->trace, marked)) take(k);
  } else {
    for (size_t k = 0; k < numbers_.size(); ++k) take(k);
  }
  return sorted(std::move(found));
}

bool may_depend_on(const Value* freed, Value* other) {
  if (position_of(other) >= position_of(freed)) return false;
  const SlotNumbers below = freed->freed->leaves_of(freed->index), wanted = leaves_below(other);
  return std::includes(below.begin(), below.end(), wanted.begin(), wanted.end());
}

}  // namespace twofold
