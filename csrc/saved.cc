// Hooks for saved tensors: pack hooks are called for values that gradients will read, unpack hooks when these are read.
#include <Python.h>

#include <algorithm>

#include "owned.h"
#include "tensor.h"

namespace twofold {
namespace {

// The same value, detached from the graph.
ValueRef plain(Type* type, const BufferRef& buffer, uint32_t location) {
  ValueRef made(new_value(type));
  made->buffer = buffer;
  made->location = location;
  return made;
}

// The inputs, and the output (-2), that the gradients of an entry read.
bool used_by(const Entry& entry, std::vector<int32_t>& used) {
  used.clear();
  const GradientPlan* plan = gradient_plan_of(entry.instance, entry.gradient_mask);
  if (!plan) return false;
  for (uint32_t k = 0; k < entry.count; ++k) {
    if (!entry.flows_to(k)) continue;
    const Gradient* gradient = plan->at(k);
    if (!gradient) return false;
    for (int32_t one : gradient->reads) {
      if (one != -1 && std::find(used.begin(), used.end(), one) == used.end()) used.push_back(one);
    }
  }
  std::sort(used.begin(), used.end());
  return true;
}

ValueRef saved_value(const SavedTrace& saved, Ref ref) {
  const Trace& trace = saved.trace->trace;
  if (ref >= 0) {
    const Entry& entry = trace.entries[static_cast<size_t>(ref)];
    const BufferRef& kept = saved.kept[static_cast<size_t>(ref)];
    return kept ? plain(entry.instance->output, kept, saved.provenance[static_cast<size_t>(ref)].location) : ValueRef();
  }
  const ValueRef& leaf = saved.leaves[static_cast<size_t>(~ref)].value;
  return leaf && leaf->buffer ? plain(leaf->type, leaf->buffer, leaf->location) : ValueRef();
}

}  // namespace

bool pack_saved(SavedTrace& saved, PyObject* pack, PyObject* unpack) {
  const Trace& trace = saved.trace->trace;
  const Owned both(PyTuple_Pack(2, pack, unpack));  // a hook may set others
  if (!both) return false;
  std::vector<int32_t> used;
  Recorder& recorder = Recorder::current();
  for (size_t i = 0; i < trace.entries.size(); ++i) {
    const Entry& entry = trace.entries[i];
    if (!entry.requires_grad()) continue;
    if (!used_by(entry, used)) return false;
    for (int32_t one : used) {
      ValueRef value = saved_value(saved, one == -2 ? static_cast<Ref>(i) : trace.inputs(entry)[one]);
      if (!value) continue;
      PyObject* tensor = wrap(std::move(value));
      bool eager = std::exchange(recorder.eager, false);
      PyObject* held = std::exchange(recorder.pack, nullptr);
      PyObject* object = tensor ? PyObject_CallOneArg(pack, tensor) : nullptr;
      bool done = object && recorder.flush();
      recorder.pack = held;
      recorder.eager = eager;
      Py_XDECREF(tensor);
      if (object) saved.packed.emplace_back(static_cast<int32_t>(i), one, object, Py_NewRef(unpack));
      if (!done) return false;
    }
  }
  // Frees the saved values: what the hook returned may take less memory.
  std::fill(saved.kept.begin(), saved.kept.end(), BufferRef());
  for (Leaf& leaf : saved.leaves) {
    Value* value = leaf.value.get();
    if (!value) continue;
    leaf.value = value->requires_grad ? at_place_of(value, value->type, BufferRef()) : ValueRef();
  }
  return true;
}

}  // namespace twofold
