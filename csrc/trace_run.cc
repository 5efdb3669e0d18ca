#include <Python.h>

#include "trace_run.h"

#include <algorithm>
#include <utility>

#include "deferred.h"
#include "freed_trace.h"
#include "guard.h"

namespace twofold {
namespace {

uint64_t next_traced = 0;

std::vector<const Running*>& all_running() {
  static auto& list = *new std::vector<const Running*>();
  return list;
}

// The call that made an entry, looked up through identities.
OpInstance* maker(const Trace& trace, size_t index) {
  const Entry* entry = &trace.entries[index];
  while (entry->instance->operation->python == hooks.copy && trace.inputs(*entry)[0] >= 0) {
    entry = &trace.entries[static_cast<size_t>(trace.inputs(*entry)[0])];
  }
  return entry->instance;
}

// The values of the inputs of an executable.
class LeafValues final : public InputValues {
 public:
  explicit LeafValues(const TraceRun& run) : run_(run) {}
  InputValue at(size_t input) const override { return {run_.leaves[static_cast<size_t>(run_.cached->leaf_source[input])].value.get()}; }
  size_t count() const override { return run_.cached->leaf_source.size(); }

 private:
  const TraceRun& run_;
};

}  // namespace

Running::Running(uint64_t stamp) : stamp_(stamp) { all_running().push_back(this); }
Running::~Running() { all_running().erase(std::find(all_running().begin(), all_running().end(), this)); }

const Running* Running::find(uint64_t stamp) {
  const auto& all = all_running();
  const auto found = std::find_if(all.begin(), all.end(), [stamp](const Running* one) { return one->stamp_ == stamp; });
  return found == all.end() ? nullptr : *found;
}

uint32_t TraceRun::Lines::location(const void* self, size_t leaf) {
  const TraceRun& run = static_cast<const Lines*>(self)->run_;
  const Value* value = run.leaves[static_cast<size_t>(run.cached->leaf_source[leaf])].value.get();
  return value ? value->location : 0;
}

void TraceRun::take_before(std::vector<ValueRef>& unused) {
  for (size_t j = 0; j < living.size(); ++j) {
    ValueRef held = std::move(living[j]->before);
    if (held && living[j]->references - living[j]->uses == 2) before.emplace_back(j, std::move(held));  // no other handle has it
    else if (held) unused.push_back(std::move(held));
  }
}

void TraceRun::give_before() {
  for (auto& [j, value] : before) living[j]->before = std::move(value);
  before.clear();
}

bool TraceRun::run(Interrupts& interrupts) try {
  const auto& source = cached->leaf_source;
  constexpr size_t kOnStack = 128;
  void* pointers_on_stack[kOnStack];
  Buffer* spare_on_stack[kOnStack];
  std::vector<void*> pointers_on_heap;
  std::vector<Buffer*> spare_on_heap;
  void** pointers = pointers_on_stack;
  Buffer** spare = spare_on_stack;
  if (source.size() > kOnStack) {
    pointers_on_heap.resize(source.size());
    spare_on_heap.resize(source.size());
    pointers = pointers_on_heap.data();
    spare = spare_on_heap.data();
  }
  std::vector<const Value*> held;
  for (const auto& [j, value] : before) held.push_back(value.get());
  std::sort(held.begin(), held.end());
  for (size_t k = 0; k < source.size(); ++k) {
    Leaf& leaf = leaves[static_cast<size_t>(source[k])];
    Value* value = leaf.value.get();
    // Another thread may be about to deliver it, or the run that was to compute it has failed.
    if (value && !value->buffer && !realise(value)) return false;
    pointers[k] = memory_of(leaf);
    // The trace has the only reference to the value, but for one that is kept in case it fails, and the value the only one to its buffer.
    const bool is_held = value && value->references == 2 && std::binary_search(held.begin(), held.end(), value);
    bool dies = value && value->references == 1 + is_held && value->buffer->references == 1 && !value->buffer->owner && !value->buffer->whole;
    dies = dies && !cached->needed_leaf[static_cast<size_t>(source[k])];
    spare[k] = dies && !cached->keeps_history ? value->buffer.get() : nullptr;
  }
  const Lines lines(*this);
  const LeafValues values(*this);
  if (cached->executable->run(pointers, spare, cached->living, results, lines.get(), interrupts, std::move(prepared), &values)) return true;
  if (interrupts.has_overwritten()) before.clear();
  return false;
} catch (...) {
  set_error_of_exception();
  return false;
}

bool TraceRun::deliver(std::shared_ptr<SavedTrace>& saved) try {
  keep_deferred(*cached, living, results, leaves, provenance);
  const uint64_t order = ++next_traced;
  const auto is_freed = [&](size_t j) {
    const auto entry = static_cast<size_t>(cached->outputs[j]);
    return cached->used_up[entry] && cached->trace.entries[entry].requires_grad() && !living[j]->is_leaf;
  };
  std::shared_ptr<const FreedTrace> freed;
  for (size_t j = 0; j < cached->living && !freed; ++j) {
    if (is_freed(j)) freed = std::make_shared<FreedTrace>(order, cached, leaves);
  }
  if (cached->keeps_history) {
    saved = std::make_shared<SavedTrace>();
    saved->order = order;
    saved->trace = cached;
    saved->kept.resize(cached->trace.entries.size());
    for (size_t j = 0; j < cached->kept; ++j) saved->kept[static_cast<size_t>(cached->outputs[j])] = results[j];
    saved->provenance.assign(provenance.begin(), provenance.begin() + static_cast<ptrdiff_t>(saved->kept.size()));
    saved->leaves = std::move(leaves);
    saved->watched = std::move(watched);
    saved->shown = std::move(shown);
  }
  auto held = before.begin();
  for (size_t j = 0; j < cached->living; ++j) {
    Value* value = living[j].get();
    size_t entry = static_cast<size_t>(cached->outputs[j]);
    value->pending = false;
    value->owner = nullptr;
    value->stamp = 0;
    value->buffer = results[j];
    while (held != before.end() && held->first < j) ++held;
    if (!value->buffer && held != before.end() && held->first == j) value->buffer = held->second->buffer;
    value->failed = !value->buffer;
    if (saved && value->shown) saved->shown.add(static_cast<int32_t>(entry), *value->shown);  // it was written to while the trace ran
    if (!cached->trace.entries[entry].requires_grad() || value->is_leaf) continue;
    if (is_freed(j)) {
      value->freed = freed;
      value->made_by = maker(cached->trace, entry);
    } else {
      value->saved = saved;
    }
  }
  return true;
} catch (...) {
  set_error_of_exception();
  for (ValueRef& value : living) {
    if (!value->pending) continue;
    value->pending = false;
    value->owner = nullptr;
    value->stamp = 0;
    value->failed = true;
  }
  return false;
}

void TraceRun::deliver_rest() {
  std::shared_ptr<SavedTrace> saved;
  results.resize(cached->outputs.size());
  static_cast<void>(deliver(saved));
}

bool is_transient_error() {
  return PyErr_ExceptionMatches(PyExc_MemoryError) || !PyErr_ExceptionMatches(PyExc_Exception);  // KeyboardInterrupt, SystemExit
}

uint64_t traced_runs() { return next_traced; }

}  // namespace twofold
