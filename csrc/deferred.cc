#include <Python.h>

#include "deferred.h"

#include <algorithm>
#include <unordered_map>

namespace twofold {
namespace {

// Sums of many such values cost more to defer than to compute.
constexpr size_t kMostCalls = 16;

// The calls, in order, that rematerialise an entry of a trace from saved values; empty if it is not deferred.
class Plan {
 public:
  explicit Plan(const Trace& trace) : trace_(trace) {}

  // False with a Python error set.
  bool find(size_t entry) {
    calls_.clear();
    bool found = false;
    if (!add(entry, 0, &found)) return false;
    if (!found || calls_.size() > kMostCalls) calls_.clear();
    return true;
  }
  const std::vector<size_t>& calls() const { return calls_; }

 private:
  // `depth`: of nested sums; bounded by the number of calls, however long a chain of additions is.
  bool add(size_t index, size_t depth, bool* found) {
    *found = std::find(calls_.begin(), calls_.end(), index) != calls_.end();
    if (*found) return true;
    const Entry& entry = trace_.entries[index];
    if (entry.requires_grad() || calls_.size() > kMostCalls || depth >= kMostCalls) return true;
    const PyObject* operation = entry.instance->operation->python;
    const bool goes_on = operation == hooks.row_table && entry.count == 3;  // the initial value of a sum of rows, its last input
    if (operation == hooks.accumulate || goes_on) {
      const Ref* refs = trace_.inputs(entry);
      for (uint32_t k = goes_on ? 2 : 0; k < entry.count; ++k) {
        *found = false;
        if (refs[k] < 0) return true;
        if (!add(static_cast<size_t>(refs[k]), depth + 1, found)) return false;
        if (!*found) return true;
      }
    } else {
      const Traits* traits = traits_of(entry.instance);
      if (!traits) return false;
      *found = traits->defers;
    }
    if (*found) calls_.push_back(index);
    return true;
  }

  const Trace& trace_;
  std::vector<size_t> calls_;
};

// Immutable memory: memory that is shared with foreign code is copied. Null with a Python error set.
ValueRef constant_value(Type* type, const BufferRef& buffer, bool copy) {
  ValueRef value(new_value(type));
  value->buffer = buffer;
  return copy ? stable_value(value.get()) : value;
}

class Keeper {
 public:
  Keeper(const CachedTrace& cached, const std::vector<BufferRef>& results, const std::vector<Leaf>& leaves,
         const std::vector<Provenance>& provenance)
      : cached_(cached), results_(results), leaves_(leaves), provenance_(provenance) {}

  // Null if a value that the calls read could not be computed.
  std::unique_ptr<Deferred> keep(const std::vector<size_t>& calls) {
    auto made = std::make_unique<Deferred>();
    std::unordered_map<Ref, Ref> known;
    for (size_t index : calls) {
      const Entry& entry = cached_.trace.entries[index];
      Deferred::Call call{entry.instance, provenance_[index], {}};
      for (uint32_t k = 0; k < entry.count; ++k) {
        Ref ref = cached_.trace.inputs(entry)[k];
        auto [position, fresh] = known.try_emplace(ref, ~static_cast<Ref>(made->leaves.size()));
        if (fresh && !add_leaf(*made, ref)) return nullptr;
        call.inputs.push_back(position->second);
      }
      known[static_cast<Ref>(index)] = static_cast<Ref>(made->calls.size());
      made->calls.push_back(std::move(call));
    }
    return made;
  }

 private:
  bool add_leaf(Deferred& made, Ref ref) {
    Type* type = cached_.trace.type_of_ref(ref);
    made.leaf_types.push_back(type);
    if (ref < 0) {
      const Leaf& leaf = leaves_[static_cast<size_t>(~ref)];
      made.leaves.push_back(leaf.value ? Leaf{constant_value(type, leaf.value->buffer, true), 0} : leaf);
      return !leaf.value || made.leaves.back().value;
    }
    auto found = std::find(cached_.outputs.begin(), cached_.outputs.end(), ref);
    size_t number = static_cast<size_t>(found - cached_.outputs.begin());
    if (number >= results_.size() || !results_[number]) return false;
    made.leaves.push_back(Leaf{constant_value(type, results_[number], number < cached_.living), 0});
    return static_cast<bool>(made.leaves.back().value);
  }

  const CachedTrace& cached_;
  const std::vector<BufferRef>& results_;
  const std::vector<Leaf>& leaves_;
  const std::vector<Provenance>& provenance_;
};

}  // namespace

bool Recorder::plan_deferred(CachedTrace& cached, std::vector<char>& needed) const {
  const Trace& trace = cached.trace;
  cached.needed_leaf.assign(trace.leaves.size(), 0);
  Plan plan(trace);
  std::vector<char> kept = needed;
  for (size_t i = 0; i < trace.entries.size(); ++i) {
    if (cached.alive[i] != 1 || kept[i]) continue;
    if (!plan.find(i)) return false;
    if (plan.calls().empty()) continue;
    cached.deferred.push_back(static_cast<Ref>(i));
    for (size_t index : plan.calls()) {
      const Entry& entry = trace.entries[index];
      for (uint32_t k = 0; k < entry.count; ++k) {
        Ref ref = trace.inputs(entry)[k];
        bool computed = ref >= 0 && std::find(plan.calls().begin(), plan.calls().end(), static_cast<size_t>(ref)) == plan.calls().end();
        if (computed) needed[static_cast<size_t>(ref)] = 1;
        if (ref < 0) cached.needed_leaf[static_cast<size_t>(~ref)] = 1;
      }
    }
  }
  return true;
}

void keep_deferred(const CachedTrace& cached, std::vector<ValueRef>& values, const std::vector<BufferRef>& results,
                  const std::vector<Leaf>& leaves, const std::vector<Provenance>& provenance) {
  Plan plan(cached.trace);
  Keeper keeper(cached, results, leaves, provenance);
  for (size_t k = 0; k < cached.deferred.size(); ++k) {
    Value* value = values[cached.living + k].get();
    value->pending = false;
    value->owner = nullptr;
    value->stamp = 0;
    plan.find(static_cast<size_t>(cached.deferred[k]));  // computed when the trace was planned: cannot fail
    value->deferred = keeper.keep(plan.calls());
    value->failed = !value->deferred;
  }
}

Ref Recorder::rematerialise(Value* value) {
  std::unique_ptr<Deferred> work = std::move(value->deferred);
  std::vector<Ref> leaves, calls, inputs;
  for (size_t k = 0; k < work->leaves.size(); ++k) {
    const Leaf& leaf = work->leaves[k];
    leaves.push_back(leaf.value ? leaf_reference(leaf.value.get()) : scalar_reference(work->leaf_types[k], leaf.scalar));
  }
  for (const Deferred::Call& call : work->calls) {
    inputs.clear();
    for (Ref ref : call.inputs) inputs.push_back(ref >= 0 ? calls[static_cast<size_t>(ref)] : leaves[static_cast<size_t>(~ref)]);
    calls.push_back(kNoRef);
    record_known(call.instance, inputs.data(), inputs.size(), 0, call.provenance, &calls.back());
  }
  Ref made = calls.back();
  value->pending = true;
  value->owner = this;
  value->stamp = stamp_;
  value->index = made;
  live_[static_cast<size_t>(made)] = value;
  alive_[static_cast<size_t>(made)] = 1;
  return made;
}

bool Recorder::materialise(Value* value) {
  if (busy_ && !wait_until_free()) return false;
  alive_[static_cast<size_t>(rematerialise(value))] = 2;
  return true;
}

}  // namespace twofold
