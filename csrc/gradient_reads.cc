// Operands of a backward pass: values of traces, results of hooks for saved tensors, and checks of versions; and what hooks of
// values and calls make of cotangents.
#include <Python.h>

#include <algorithm>

#include "location.h"
#include "owned.h"
#include "tensor.h"
#include "backward_pass.h"

namespace twofold {

namespace {

// The position of the value whose hooks run in this thread: its trace, and its number there.
struct Hooked {
  std::shared_ptr<SavedTrace> saved;
  size_t index = 0;
};
thread_local Hooked hooked;

}  // namespace

PyObject* at_hooked_position(PyObject* tensor) {
  ValueRef value = held_value(reinterpret_cast<PyTensor*>(tensor));
  if (!value || !realise(value.get())) return nullptr;
  Recorder& recorder = Recorder::current();
  const Provenance at = hooked.saved ? hooked.saved->provenance[hooked.index] : recorder.provenance(hooked.index);
  recorder.differentiated = at.origin() | Provenance::kByUser;
  if (!hooked.saved) return Py_NewRef(tensor);
  return wrap(at_place_of(kept_value(hooked.saved, hooked.index).get(), value->type, value->buffer));
}

// Translates a reference of the scope's trace to one of the open trace.
bool BackwardPass::translate(Scope& scope, Ref ref, Ref* out) {
  if (!scope.saved) {
    *out = ref;
    return true;
  }
  Ref& known = scope.translated.at(ref);
  if (known == kNoRef) {
    const SavedTrace& saved = *scope.saved;
    const Trace& trace = saved.trace->trace;
    if (ref < 0) {
      const Leaf& leaf = saved.leaves[static_cast<size_t>(~ref)];
      known = leaf.value ? recorder_.leaf_reference(leaf.value.get())
                         : recorder_.scalar_reference(trace.leaves[static_cast<size_t>(~ref)], leaf.scalar);
    } else {
      size_t index = static_cast<size_t>(ref);
      if (!saved.kept[index]) {
        PyErr_SetString(PyExc_RuntimeError, "backward: a value that the gradient reads was not kept");
        return false;
      }
      ValueRef value(new_value(trace.entries[index].instance->output));
      value->location = saved.provenance[index].location;
      value->buffer = saved.kept[index];
      value->requires_grad = trace.entries[index].requires_grad();
      value->is_leaf = !value->requires_grad;
      value->index = ref;
      if (value->requires_grad) value->saved = scope.saved;
      known = recorder_.leaf_reference(value.get());
    }
    if (PyErr_Occurred()) return false;
  }
  *out = known;
  return true;
}

bool BackwardPass::written_over(const Scope& scope, Ref ref, const Snapshot& snapshot) const {
  const Trace* trace = scope.saved ? &scope.saved->trace->trace : nullptr;
  uint32_t location = 0;
  Type* type = trace ? trace->type_of_ref(ref) : type_of(ref);
  if (ref >= 0) {
    location = origin_of(scope, ref).location;
  } else if (const Value* leaf = (scope.saved ? scope.saved->leaves : recorder_.leaves())[static_cast<size_t>(~ref)].value.get()) {
    location = leaf->location;
  }
  PyErr_Format(PyExc_RuntimeError,
               "backward: one of the variables needed for gradient computation has been modified by an inplace operation that no graph "
               "records: %s (%s) was written %u times since it was used. Write to a clone(), or after the backward pass.",
               type->text().c_str(), line_text(location).c_str(), snapshot.written());
  return false;
}

// What a storage holds now, at the position in the graph of what it held.
ValueRef BackwardPass::replaced(const Scope& scope, Ref ref, Value* now) const {
  if (!now->buffer) return share(now);
  if (ref < 0) {
    const auto& leaves = scope.saved ? scope.saved->leaves : recorder_.leaves();
    return at_place_of(leaves[static_cast<size_t>(~ref)].value.get(), now->type, now->buffer);
  }
  if (!scope.saved) return share(now);
  ValueRef made = kept_value(scope.saved, static_cast<size_t>(ref));
  made->type = now->type;
  made->buffer = now->buffer;
  return made;
}

// Checks whether a value that a gradient reads was overwritten: 1 if *out replaces it, 0 if not, -1 with an error set. `viewed`: it is
// read through a view or another handle.
int BackwardPass::read_now(Scope& scope, Ref ref, Ref* out, bool viewed) {
  read_.add(ref);
  Snapshots& shown = scope.saved ? scope.saved->shown : recorder_.shown();
  const Snapshot* snapshot = shown.empty() ? nullptr : shown.find(ref);
  if (!snapshot && ref < 0) {
    const Value* leaf = (scope.saved ? scope.saved->leaves : recorder_.leaves())[static_cast<size_t>(~ref)].value.get();
    snapshot = leaf ? leaf->shown.get() : nullptr;
  }
  if (snapshot) {
    const Snapshot::State state = snapshot->state(viewed);
    if (state == Snapshot::kSame) return 0;
    if (state == Snapshot::kWritten) return written_over(scope, ref, *snapshot), -1;
    const ValueRef now = replaced(scope, ref, snapshot->now(viewed));
    return refer(now.get(), out) ? 1 : -1;
  }
  if (ref < 0) return 0;
  auto at = [&]() -> const Entry& {
    return scope.saved ? scope.saved->trace->trace.entries[static_cast<size_t>(ref)] : recorder_.entry(static_cast<size_t>(ref));
  };
  auto inputs_at = [&] { return scope.saved ? scope.saved->trace->trace.inputs(at()) : recorder_.inputs(at()); };
  if (!at().instance->operation->is_view || at().count == 0) return 0;
  Ref first;
  int state = read_now(scope, inputs_at()[0], &first, true);
  if (state != 1) return state;
  const Entry entry = at();
  std::vector<Ref> inputs(inputs_at(), inputs_at() + entry.count);
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (!translate(scope, inputs[i], &inputs[i])) return -1;
  }
  inputs[0] = first;
  record(entry.instance, inputs.data(), inputs.size(), 0, origin_of(scope, ref), out);
  return 1;
}

// Whether a value of the scope requires gradients.
bool BackwardPass::has_gradient(const Scope& scope, Ref ref) const {
  if (!scope.saved) return requires_grad(ref);
  if (ref >= 0) return scope.saved->trace->trace.entries[static_cast<size_t>(ref)].requires_grad();
  const Value* leaf = scope.saved->leaves[static_cast<size_t>(~ref)].value.get();
  return leaf && leaf->requires_grad;
}

bool BackwardPass::read(Scope& scope, Ref ref, Ref* out, bool viewed) {
  int state = read_now(scope, ref, out, viewed);
  return state < 0 ? false : state == 1 || translate(scope, ref, out);
}

// The reference of a value, which may belong to another trace.
bool BackwardPass::refer(Value* value, Ref* out) {
  const UsedValue held(value);
  const uint64_t stamp = recorder_.stamp();
  if (recorder_.is_elsewhere(value) && !(realise(value) && is_open(stamp))) return false;
  *out = value->pending ? value->index : recorder_.leaf_reference(value);
  return !PyErr_Occurred();
}

Type* BackwardPass::type_of(Ref ref) const { return recorder_.type_of(ref); }

ValueRef BackwardPass::value_of(Ref ref) {
  if (ref == kNoRef) return ValueRef();
  if (ref >= 0) return recorder_.value_of_entry(ref, request_.create);
  return recorder_.leaves()[static_cast<size_t>(~ref)].value;
}

// All pending cotangents, as values, which stay valid when the open trace runs.
std::vector<BackwardPass::HeldRef> BackwardPass::hold(Scope& scope) {
  std::vector<HeldRef> held;
  auto hold_one = [&](Ref& ref) {
    if (ref == kNoRef) return;
    const Leaf* leaf = ref < 0 ? &recorder_.leaves()[static_cast<size_t>(~ref)] : nullptr;
    if (leaf && !leaf->value) held.push_back({&ref, ValueRef(), type_of(ref), leaf->scalar});
    else held.push_back({&ref, value_of(ref), nullptr, 0});
  };
  auto hold_terms = [&](std::vector<Term>& terms) {
    for (Term& term : terms) {
      hold_one(term.left);
      hold_one(term.right);
      for (Ref& ref : term.inputs) hold_one(ref);
    }
  };
  auto hold_all = [&](Scope& one) {
    for (Ref& ref : one.cotangents) hold_one(ref);
    for (auto& [index, terms] : one.terms) hold_terms(terms);
    for (auto& [index, terms] : one.blocks) hold_terms(terms);
  };
  hold_all(scope);
  for (Ref& ref : shared_) hold_one(ref);
  for (auto& [order, other] : saved_traces_) hold_all(other);
  for (auto& [slot, start] : starts_) hold_one(start);
  for (Sum& sum : sums_) {
    for (Ref* ref : {&sum.start, &sum.cotangent, &sum.total}) hold_one(*ref);
    hold_terms(sum.terms);
  }
  return held;
}

bool BackwardPass::refer_again(Scope& scope, const std::vector<HeldRef>& held) {
  for (auto& [position, value, type, scalar] : held) {
    if (!value) {
      *position = recorder_.scalar_reference(type, scalar);
      continue;
    }
    if (value->failed) return realise(value.get());
    if (!refer(value.get(), position)) return false;
  }
  scope.translated.clear();
  for (auto& [order, other] : saved_traces_) other.translated.clear();
  joined_.clear();
  return true;
}

// Unpacks the saved values that the gradients of a call read.
bool BackwardPass::unpack(Visit& visit) {
  const SavedTrace& saved = *visit.scope.saved;
  uint64_t stamp = recorder_.stamp();
  auto held = hold(visit.scope);
  for (const Packed& packed : saved.packed) {
    if (packed.entry != static_cast<int32_t>(visit.index)) continue;
    auto reads = [&](const Gradient& gradient) {
      return std::binary_search(gradient.reads.begin(), gradient.reads.end(), packed.used);
    };
    if (std::none_of(visit.plan.gradients.begin(), visit.plan.gradients.end(), reads)) continue;
    Ref ref = packed.used == -2 ? static_cast<Ref>(visit.index) : visit.inputs[packed.used];
    Type* type = saved.trace->trace.type_of_ref(ref);
    PyObject* tensor;
    {
      const CollectionPause::Lifted lifted(pause_);
      tensor = PyObject_CallOneArg(packed.unpack, packed.object);
    }
    const UsedValue value(tensor && is_tensor(tensor) ? current_value(reinterpret_cast<PyTensor*>(tensor)) : nullptr);
    ValueRef found;
    if (tensor && !value && !PyErr_Occurred()) {
      PyErr_Format(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                   Py_TYPE(tensor)->tp_name);
    } else if (value && (value->type->dtype != type->dtype || value->type->shape != type->shape)) {
      PyErr_Format(PyExc_RuntimeError, "saved_tensors_hooks: %s was packed and %s was unpacked. Return the like of what was packed.",
                   type->text().c_str(), value->type->text().c_str());
    } else if (value && realise(value)) {
      ValueRef position(new_value(type));
      if (ref >= 0 && saved.trace->trace.entries[static_cast<size_t>(ref)].requires_grad()) {
        position->requires_grad = true;
        position->is_leaf = false;
        position->index = ref;
        position->saved = visit.scope.saved;
      } else if (ref < 0 && saved.leaves[static_cast<size_t>(~ref)].value) {
        position = saved.leaves[static_cast<size_t>(~ref)].value;
      }
      found = at_place_of(position.get(), type, value->buffer);
    }
    Py_XDECREF(tensor);
    if (!found) return false;
    visit.unpacked.emplace_back(packed.used, std::move(found));
  }
  return recorder_.stamp() == stamp || refer_again(visit.scope, held);
}

// The hooks see a tensor and may do with it what programs do; asking for its value runs the trace that the
// cotangents are in. What they return replaces the cotangent.
bool BackwardPass::call_hooks(Scope& scope, size_t index, GradientSlot* slot) {
  uint64_t stamp = recorder_.stamp();
  auto held = hold(scope);
  const bool is_undefined = scope.cotangents[index] == kNoRef;
  ValueRef before = is_undefined ? ValueRef() : value_of(scope.cotangents[index]);
  PyObject* gradient = is_undefined ? Py_NewRef(Py_None) : wrap(before);
  bool done;
  {
    GradientScope scoped(request_.create);
    Hooked outer = std::exchange(hooked, Hooked{scope.saved, index});
    const uint32_t line = std::exchange(recorder_.differentiated, 0);
    const CollectionPause::Lifted lifted(pause_);
    done = gradient && run_hooks(slot, &gradient);
    recorder_.differentiated = line;
    hooked = std::move(outer);
  }
  const bool dropped = done && (!gradient || gradient == Py_None);
  ValueRef after = dropped ? before : done && is_tensor(gradient) ? held_value(reinterpret_cast<PyTensor*>(gradient)) : ValueRef();
  done = done && (dropped || after) && (recorder_.stamp() == stamp || refer_again(scope, held));
  if (done && dropped) scope.cotangents[index] = kNoRef;
  if (done && after.get() != before.get()) {
    done = refer(after.get(), &scope.cotangents[index]);
  }
  Py_XDECREF(gradient);
  return done && !PyErr_Occurred();
}

// Calls the hooks of a call with the gradients of its inputs, None where there is none, and that of its result; a tuple that one
// returns replaces them.
bool BackwardPass::run_call_hooks(const Visit& visit, GradientSlot* slot, std::vector<Ref>& made) {
  uint64_t stamp = recorder_.stamp();
  auto held = hold(visit.scope);
  Owned given(PyTuple_New(static_cast<Py_ssize_t>(made.size())));
  for (size_t k = 0; given && k < made.size(); ++k) {
    PyObject* tensor = made[k] == kNoRef ? Py_NewRef(Py_None) : wrap(value_of(made[k]));
    if (!tensor) return false;
    PyTuple_SET_ITEM(given.object, static_cast<Py_ssize_t>(k), tensor);
  }
  const Ref arrived = visit.scope.cotangents[visit.index];
  const Owned result(arrived == kNoRef ? Py_NewRef(Py_None) : wrap(value_of(arrived)));
  if (!given || !result) return false;
  {
    GradientScope scoped(request_.create);
    Hooked outer = std::exchange(hooked, Hooked{visit.scope.saved, visit.index});
    const uint32_t line = std::exchange(recorder_.differentiated, 0);
    const CollectionPause::Lifted lifted(pause_);
    const Owned called(PyList_AsTuple(slot->call_hooks));  // a hook may remove itself, or add one
    if (!called) Py_CLEAR(given.object);
    for (Py_ssize_t i = 0; given && i < PyTuple_GET_SIZE(called.object); ++i) {
      PyObject* changed = PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(called.object, i), given.object, result.object, nullptr);
      if (changed == Py_None) Py_DECREF(changed);
      else Py_XSETREF(given.object, changed);
    }
    recorder_.differentiated = line;
    hooked = std::move(outer);
  }
  if (!given || (recorder_.stamp() != stamp && !refer_again(visit.scope, held))) return false;
  for (size_t k = 0; k < made.size(); ++k) {
    PyObject* tensor = PyTuple_GET_ITEM(given.object, static_cast<Py_ssize_t>(k));
    ValueRef value = is_tensor(tensor) ? held_value(reinterpret_cast<PyTensor*>(tensor)) : ValueRef();
    made[k] = kNoRef;
    if (is_tensor(tensor) && !(value && refer(value.get(), &made[k]))) return false;
  }
  return !PyErr_Occurred();
}

// The gradient of an input as one entry, whatever its form; none where there is no gradient.
bool BackwardPass::cotangent_alone(const Visit& visit, uint32_t k, Ref* out) {
  const Gradient* gradient = visit.plan.at(k);
  if (!gradient) return false;
  if (!gradient->instance) return true;
  std::vector<Ref>& refs = operands_;
  uint64_t mask;
  if (!read_all(visit, *gradient, refs, &mask)) return false;
  return record(gradient->instance, refs.data(), refs.size(), mask, origin_of(visit.scope, static_cast<Ref>(visit.index)), out);
}

// The gradients of the inputs of a call, as the hooks of the call leave them.
bool BackwardPass::hooked_cotangents(const Visit& visit, GradientSlot* slot) {
  std::vector<Ref> made(visit.entry.count, kNoRef);
  for (uint32_t k = 0; k < visit.entry.count; ++k) {
    if (is_wanted(visit.scope, visit.entry, visit.inputs, k) && !cotangent_alone(visit, k, &made[k])) return false;
  }
  if (!run_call_hooks(visit, slot, made)) return false;
  for (uint32_t k = 0; k < visit.entry.count; ++k) {
    Destination destination;
    if (made[k] == kNoRef) continue;
    if (!find_destination(visit.scope, visit.inputs[k], &destination)) return false;
    if (!destination.reached()) continue;
    if (destination.slot) sum_of(destination).dense = true;
    if (!contribute(visit, destination, made[k])) return false;
  }
  return true;
}

// Nothing arrives at a value: its hooks are told so, and nothing arrives at what it was computed of.
bool BackwardPass::visit_undefined(Scope& scope, size_t index) {
  GradientSlot* watched = scope.saved ? watched_at(scope.saved->watched, index) : nullptr;
  if (watched && watched->has_hooks() && !call_hooks(scope, index, watched)) return false;
  return scope.cotangents[index] == kNoRef ? leave_undefined(scope, index) : differentiate_call(scope, index);
}

// Says to the inputs of a call that nothing arrives from it.
bool BackwardPass::leave_undefined(Scope& scope, size_t index) {
  const Trace* trace = scope.saved ? &scope.saved->trace->trace : nullptr;
  const Entry entry = trace ? trace->entries[index] : recorder_.entry(index);
  const Ref* source = trace ? trace->inputs(entry) : recorder_.inputs(entry);
  const std::vector<Ref> inputs(source, source + entry.count);
  for (uint32_t k = 0; k < entry.count; ++k) {
    Destination destination;
    if (!is_wanted(scope, entry, inputs.data(), k)) continue;
    if (!find_destination(scope, inputs[k], &destination)) return false;
    if (destination.slot) undefined_.push_back(destination.slot);
    if (!destination.scope) continue;
    std::vector<char>& undefined = destination.scope->undefined;
    undefined.resize(destination.scope->cotangents.size());
    undefined[static_cast<size_t>(destination.index)] = 1;
  }
  return true;
}

// A gradient that was differentiated is constant in an input, as that of relu in what relu was called on: its own gradient is zero, which
// is no matter for values that have other gradients, and is what values are given that have none.
bool BackwardPass::vanish(Scope& scope, Ref input) {
  Destination destination;
  if (!find_destination(scope, input, &destination)) return false;
  if (destination.slot) vanishing_.push_back(destination);
  if (!destination.scope) return true;
  std::vector<char>& vanishing = destination.scope->vanishing;
  vanishing.resize(destination.scope->cotangents.size());
  vanishing[static_cast<size_t>(destination.index)] = 1;
  return true;
}

// Nothing but zeros arrives at a value: they are computed where somebody sees them.
bool BackwardPass::visit_vanishing(Scope& scope, size_t index) {
  const Trace* trace = scope.saved ? &scope.saved->trace->trace : nullptr;
  const Entry entry = trace ? trace->entries[index] : recorder_.entry(index);
  if (!entry.requires_grad()) return true;
  if (is_captured(scope, index)) {
    const Origin origin = origin_of(scope, static_cast<Ref>(index));
    return record_filled(hooks.zeros, entry.instance->output, origin, &scope.cotangents[index]) && visit(scope, index);
  }
  const Ref* source = trace ? trace->inputs(entry) : recorder_.inputs(entry);
  const std::vector<Ref> inputs(source, source + entry.count);
  const GradientPlan* plan = found([&] { return gradient_plan_of(entry.instance, entry.gradient_mask); });
  if (!plan) return false;
  for (uint32_t k = 0; k < entry.count; ++k) {
    if (!is_wanted(scope, entry, inputs.data(), k)) continue;
    const Gradient* gradient = plan->at(k);
    if (!gradient) return false;
    if ((gradient->instance || entry.instance->operation->is_gradient) && !vanish(scope, inputs[k])) return false;
  }
  return true;
}

// Zeros for leaves that have no other gradient.
bool BackwardPass::settle_vanishing() {
  for (const Destination& leaf : vanishing_) {
    if (sum_of_.count(leaf.slot)) continue;
    Sum& sum = sum_of(leaf);
    sum.dense = true;
    Ref zeros;
    if (!record_filled(hooks.zeros, leaf.type, {}, &zeros)) return false;
    sum.cotangent = zeros;
  }
  return true;
}

}  // namespace twofold
