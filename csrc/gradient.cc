#include <Python.h>

#include "gradient.h"

#include <algorithm>

#include "tensor.h"
#include "backward_pass.h"
#include "freed_trace.h"
#include "owned.h"

namespace twofold {
namespace {

bool raise(const char* text) {
  PyErr_SetString(PyExc_RuntimeError, text);
  return false;
}

// Whether gradients of a call read tensors beside the cotangent, which a pass lets go of; -1 with a Python error set.
int reads_values(const GradientPlan& plan, const OpInstance& call) {
  if (plan.reads_values >= 0) return plan.reads_values;
  bool found = false;
  const auto is_kept = [&](int32_t read) { return read == -1 || (read >= 0 && call.inputs[static_cast<size_t>(read)]->weak); };
  for (size_t k = 0; k < std::min(call.inputs.size(), plan.gradients.size()); ++k) {
    const Gradient* gradient = plan.at(k);
    if (!gradient) return -1;
    found = found || !std::all_of(gradient->reads.begin(), gradient->reads.end(), is_kept);
  }
  return plan.reads_values = found;
}

}  // namespace

bool is_frozen(const Value* leaf) {
  if (!leaf->requires_grad) return true;
  if (!leaf->is_leaf || !leaf->slot || !leaf->slot->handle) return false;
  const Owned handle(PyObject_CallNoArgs(leaf->slot->handle));
  if (!handle) PyErr_Clear();
  if (!handle || !is_tensor(handle.object)) return false;
  const auto* tensor = reinterpret_cast<const PyTensor*>(handle.object);
  return tensor->value->slot == leaf->slot && !tensor->detached && !tensor->value->requires_grad;
}

bool BackwardPass::requires_grad(Ref ref) const {
  if (ref >= 0) return recorder_.entry(static_cast<size_t>(ref)).requires_grad();
  const Leaf& leaf = recorder_.leaves()[static_cast<size_t>(~ref)];
  return leaf.value && leaf.value->requires_grad;
}

bool BackwardPass::add(Ref* sum, Ref term, const Origin& origin) {
  if (*sum == kNoRef) {
    *sum = term;
    return true;
  }
  static Operation* const accumulate = operation_of(hooks.accumulate);
  Ref inputs[2] = {*sum, term};
  Type* type = type_of(*sum);
  Type* types[2] = {type, type};
  const OpInstanceRef instance = found([&] { return op_instance_of(accumulate, no_attributes(), types, 2, nullptr); });
  if (!instance) return false;
  uint64_t mask = 0;
  for (size_t i = 0; request_.create && i < 2; ++i) mask |= requires_grad(inputs[i]) ? Entry::mask_bit(i) : 0;
  return record(instance, inputs, 2, mask, origin, sum);
}

// Records an entry of the pass.
bool BackwardPass::record(OpInstance* instance, const Ref* inputs, size_t count, uint64_t mask, const Origin& origin, Ref* out) {
  recorder_.record_known(instance, inputs, count, mask, {request_.location, origin.location}, out);
  if (crossed_ && !(sole_ && scopes_ == 1)) return true;
  if (forward_.size() + 1 != recorder_.size() - begin_) forward_.resize(recorder_.size() - begin_ - 1, kNoRef);
  forward_.push_back(origin.entry);
  return true;
}

Origin BackwardPass::origin_of(const Scope& scope, Ref ref) const {
  if (ref < 0) return {};
  size_t index = static_cast<size_t>(ref);
  if (scope.saved) return {ref, scope.saved->provenance[index].origin()};
  return {ref, recorder_.provenance(index).origin()};
}

void BackwardPass::start_consuming(SavedTrace& saved) {
  if (saved.consumed.empty()) saved.consumed = saved.trace->consumed;
  saved.consumed.resize(saved.trace->trace.entries.size(), 0);
}

Scope& BackwardPass::scope_of(const std::shared_ptr<SavedTrace>& saved) {
  crossed_ = true;
  Scope& scope = saved_traces_[saved->order];
  if (!scope.saved) {
    scope.saved = saved;
    scope.cotangents.assign(saved->trace->trace.entries.size(), kNoRef);
    scope.needed.assign(request_.targets.empty() ? 0 : scope.cotangents.size(), 0);
    ++scopes_;
    start_consuming(*saved);
  }
  return scope;
}

BackwardPass::Sum& BackwardPass::sum_of(const Destination& destination) {
  auto [found, fresh] = sum_of_.try_emplace(destination.slot, sums_.size());
  if (fresh) sums_.push_back(Sum{destination.slot, destination.type, destination.index});
  return sums_[found->second];
}

// Whether the gradient of a value that is no entry of a trace is asked for.
bool BackwardPass::is_asked_for(const Value* value) const {
  return value->slot && std::any_of(request_.targets.begin(), request_.targets.end(), [&](const Value* target) { return target->slot == value->slot; });
}

bool BackwardPass::find_leaf(Value* leaf, Ref target, Destination* destination) {
  if (!leaf || is_frozen(leaf)) return is_frozen_ = true;
  if (leaf->is_leaf) {
    if (leaf->slot) *destination = Destination{nullptr, target, leaf->slot, leaf->type};
    return true;
  }
  if (leaf->freed) {
    if (request_.targets.empty()) return raise(kSecondPass);
    if (is_asked_for(leaf)) *destination = Destination{nullptr, target, leaf->slot, leaf->type};
    return true;
  }
  if (leaf->saved) *destination = Destination{&scope_of(leaf->saved), leaf->index, nullptr};
  return true;
}

bool BackwardPass::give(const Destination& destination, Ref cotangent) {
  if (destination.slot) {
    // what the user gave as the cotangent of a root is not made its gradient: the memory of both may be written to
    if (cotangent < static_cast<Ref>(begin_) && !copy(cotangent, &cotangent, true)) return false;
    Sum& sum = sum_of(destination);
    sum.dense = true;
    return add(&sum.cotangent, cotangent, {});
  }
  if (!destination.scope) return true;
  if (!settle_blocks(*destination.scope, destination.index)) return false;
  return add(&destination.scope->cotangents[static_cast<size_t>(destination.index)], cotangent, origin_of(*destination.scope, destination.index));
}

// Whether a cotangent belongs to a leaf, so that its terms are added in the order of the calls.
bool BackwardPass::is_source(const Destination& destination) const {
  if (!destination.scope) return destination.slot;
  static Operation* const copy = operation_of(hooks.copy);
  const auto index = static_cast<size_t>(destination.index);
  const SavedTrace* saved = destination.scope->saved.get();
  return (saved ? saved->trace->trace.entries[index] : recorder_.entry(index)).instance->operation == copy;
}

// Whether a cotangent may be that of another value, too: it is not shown to the user, who might write to its memory.
bool BackwardPass::is_internal(const Destination& destination) const {
  return destination.scope && !is_captured(*destination.scope, static_cast<size_t>(destination.index));
}

// Whether nothing but blocks inside zeros has arrived at a value so far.
bool BackwardPass::begins_with_blocks(const Destination& destination) const {
  if (is_stepped_ || !destination.scope || is_source(destination)) return false;
  return destination.scope->cotangents[static_cast<size_t>(destination.index)] == kNoRef;
}

// Adds a term of the visited call to the cotangent of a value.
bool BackwardPass::contribute(const Visit& visit, const Destination& destination, Ref cotangent) {
  if (!is_source(destination)) return give(destination, cotangent);
  Term term;
  term.right = cotangent;
  term.order = order_of(visit);
  term.origin = destination.scope ? origin_of(*destination.scope, destination.index) : Origin{};
  terms_of(destination).push_back(std::move(term));
  return true;
}

// The operands of a gradient as references of the open trace, and to which of them gradients flow.
bool BackwardPass::read_all(const Visit& visit, const Gradient& gradient, std::vector<Ref>& refs, uint64_t* mask) {
  refs.resize(gradient.used.size());
  *mask = 0;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (!read_one(visit, gradient.used[i], &refs[i])) return false;
    if (request_.create && requires_grad(refs[i])) *mask |= Entry::mask_bit(i);
  }
  return true;
}

bool BackwardPass::read_one(const Visit& visit, int32_t slot, Ref* out) {
  if (slot == -1) {
    *out = visit.scope.cotangents[visit.index];
    return true;
  }
  if (slot >= 0 && static_cast<size_t>(slot) >= visit.entry.count) return read_shared(visit, static_cast<size_t>(slot), out);
  bool found = false;
  for (const auto& [unpacked, value] : visit.unpacked) {
    if (unpacked != slot || found) continue;
    *out = recorder_.leaf_reference(value.get());
    if (PyErr_Occurred()) return false;
    found = true;
  }
  const Ref source = slot == -2 ? static_cast<Ref>(visit.index) : visit.inputs[slot];
  const bool detached = slot >= 0 && !visit.entry.flows_to(static_cast<size_t>(slot)) && has_gradient(visit.scope, source);
  const bool viewed = detached || (slot >= 0 && visit.entry.instance->operation->reads_views);
  if (!found && !read(visit.scope, source, out, viewed)) return false;
  // a detached operand is constant in the gradient, too
  const bool cut = detached && request_.create && requires_grad(*out);
  return !cut || copy(*out, out, false);
}

// A common subexpression of gradients of the call, recorded at its first use.
bool BackwardPass::read_shared(const Visit& visit, size_t slot, Ref* out) {
  const size_t number = slot - visit.entry.count;
  if (shared_.size() <= number) shared_.resize(number + 1, kNoRef);
  if (shared_[number] == kNoRef) {
    const Gradient& gradient = visit.plan.gradients[slot];
    std::vector<Ref> refs;
    uint64_t mask;
    Ref made;
    if (!read_all(visit, gradient, refs, &mask)) return false;
    record(gradient.instance, refs.data(), refs.size(), mask, origin_of(visit.scope, static_cast<Ref>(visit.index)), &made);
    shared_[number] = made;
  }
  *out = shared_[number];
  return true;
}

bool BackwardPass::cotangent_of(const Visit& visit, uint32_t k) {
  const Gradient* gradient = visit.plan.at(k);
  if (!gradient) return false;
  if (!gradient->instance) return !visit.entry.instance->operation->is_gradient || vanish(visit.scope, visit.inputs[k]);
  Destination destination;
  if (!find_destination(visit.scope, visit.inputs[k], &destination)) return false;
  if (!destination.reached()) return true;
  if (destination.slot && !gradient->form.sparse) sum_of(destination).dense = true;
  const Form::Kind kind = static_cast<Form::Kind>(gradient->form.kind);
  const bool same = kind == Form::kIdentity && gradient->instance->output == visit.entry.instance->output;
  if (same && !is_stepped_ && is_internal(destination)) return contribute(visit, destination, visit.scope.cotangents[visit.index]);
  std::vector<Ref>& refs = operands_;
  uint64_t mask;
  if (!read_all(visit, *gradient, refs, &mask)) return false;
  if (kind == Form::kBlock && begins_with_blocks(destination)) return keep_block(visit, *gradient, refs, destination), true;
  const bool is_added = kind == Form::kPlain || kind == Form::kTranspose || kind == Form::kIdentity || kind == Form::kBlock;
  if (!is_added) return keep_factors(visit, *gradient, k, refs, destination);
  Ref made;
  record(gradient->instance, refs.data(), refs.size(), mask, origin_of(visit.scope, static_cast<Ref>(visit.index)), &made);
  return contribute(visit, destination, made);
}

// Delivers the cotangent, after the hooks of the value.
bool BackwardPass::capture(Scope& scope, size_t index) {
  const bool leads = scope.needed.empty() || scope.needed[index] || is_target(scope, static_cast<Ref>(index));
  if (!scope.saved) {
    Value* value = recorder_.live(static_cast<Ref>(index));
    if (value && value->slot && !value->is_leaf && leads) give(Destination{nullptr, static_cast<Ref>(index), value->slot}, scope.cotangents[index]);
    return true;
  }
  GradientSlot* watched = watched_at(scope.saved->watched, index);
  if (watched && watched->has_hooks() && !call_hooks(scope, index, watched)) return false;
  if (scope.cotangents[index] == kNoRef) return true;
  if (watched && watched->retains && leads) give(Destination{nullptr, kNoRef, watched}, scope.cotangents[index]);
  for (Value* target : request_.targets) {
    if (target->saved != scope.saved || target->index != static_cast<int32_t>(index) || !target->slot) continue;
    if (target->slot != watched || !watched->retains) give(Destination{nullptr, kNoRef, target->slot}, scope.cotangents[index]);
  }
  return true;
}

bool BackwardPass::is_wanted(Scope& scope, const Entry& entry, const Ref* inputs, uint32_t k) {
  return entry.flows_to(k) && (scope.needed.empty() || leads_to_target(scope, inputs[k]));
}

bool BackwardPass::visit(Scope& scope, size_t index) {
  const Trace* trace = scope.saved ? &scope.saved->trace->trace : nullptr;
  const Entry& entry = trace ? trace->entries[index] : recorder_.entry(index);
  if (!entry.requires_grad()) return true;
  if (!capture(scope, index)) return false;
  if (scope.cotangents[index] == kNoRef) return leave_undefined(scope, index);  // a hook says that there is none
  return differentiate_call(scope, index);
}

bool BackwardPass::differentiate_call(Scope& scope, size_t index) {
  const Trace* trace = scope.saved ? &scope.saved->trace->trace : nullptr;
  const Entry entry = trace ? trace->entries[index] : recorder_.entry(index);
  if (!scope.needed.empty() && !scope.needed[index]) return true;
  const Ref* source = trace ? trace->inputs(entry) : recorder_.inputs(entry);
  std::vector<Ref>& inputs = inputs_;
  inputs.assign(source, source + entry.count);
  uint64_t wanted = 0;
  for (uint32_t k = 0; k < entry.count; ++k) wanted |= is_wanted(scope, entry, inputs.data(), k) ? Entry::mask_bit(k) : 0;
  const GradientPlan* plan = found([&] { return gradient_plan_of(entry.instance, wanted); });
  int reading = plan ? reads_values(*plan, *entry.instance) : -1;
  if (reading < 0) return false;
  if (reading && (scope.saved ? scope.saved->consumed[index] & kConsumed : recorder_.is_consumed(index))) return raise(kSecondPass);
  Visit visit{scope, index, entry, inputs.data(), *plan};
  shared_.clear();
  if (scope.saved && !scope.saved->packed.empty() && !unpack(visit)) return false;
  GradientSlot* watched = scope.saved ? watched_at(scope.saved->watched, index) : nullptr;
  const bool is_hooked = watched && watched->has_call_hooks();
  if (is_hooked && !hooked_cotangents(visit, watched)) return false;
  for (uint32_t k = 0; !is_hooked && k < entry.count; ++k) {
    if (is_wanted(scope, entry, inputs.data(), k) && !cotangent_of(visit, k)) return false;
  }
  shared_.clear();
  if (reading) reading_.push_back(static_cast<uint32_t>(index));
  if (request_.retain) return true;
  if (!reading) {  // of an input whose gradient is not needed
    const uint64_t stamp = recorder_.stamp();
    plan = gradient_plan_of(entry.instance, entry.gradient_mask);
    reading = plan ? reads_values(*plan, *entry.instance) : -1;
    if (reading < 0) PyErr_Clear();
    if (!is_open(stamp)) return false;
  }
  if (!reading) return true;
  if (!scope.saved) return recorder_.mark_consumed(index), true;
  scope.saved->consumed[index] |= kConsumed;
  freed_.push_back(static_cast<uint32_t>(index));
  return true;
}

// The entries of a pass for the gradients of some values only: first all that the roots depend on ...
void BackwardPass::reach(const Value* value) {
  if (value->pending && value->owner == &recorder_) {
    open_.needed[static_cast<size_t>(value->index)] = 1;
  } else if (value->freed) {
    dead_ends_.insert(value);
  } else if (value->saved) {
    scope_of(value->saved).needed[static_cast<size_t>(value->index)] = 1;
  }
}

void BackwardPass::reach_inputs(Scope& scope) {
  for (size_t i = scope.needed.size(); i-- > 0;) {
    const Entry& entry = scope.saved ? scope.saved->trace->trace.entries[i] : recorder_.entry(i);
    if (!scope.needed[i] || !entry.requires_grad()) continue;
    const Ref* inputs = scope.saved ? scope.saved->trace->trace.inputs(entry) : recorder_.inputs(entry);
    for (uint32_t k = 0; k < entry.count; ++k) {
      if (!entry.flows_to(k)) continue;
      const Leaf* leaf = inputs[k] < 0 ? &(scope.saved ? scope.saved->leaves : recorder_.leaves())[static_cast<size_t>(~inputs[k])] : nullptr;
      if (!leaf) scope.needed[static_cast<size_t>(inputs[k])] = 1;
      else if (leaf->value && leaf->value->requires_grad) reach(leaf->value.get());
    }
  }
}

bool BackwardPass::is_at(const Value* target, const Scope& scope, Ref ref) const {
  if (target->index != ref || target->is_leaf) return false;
  return scope.saved ? target->saved == scope.saved : target->pending && target->owner == &recorder_;
}

bool BackwardPass::is_target(const Scope& scope, Ref ref) const {
  return std::any_of(request_.targets.begin(), request_.targets.end(), [&](const Value* target) { return is_at(target, scope, ref); });
}

bool BackwardPass::leads_to_target(Scope& scope, Ref ref) {
  if (ref >= 0) return scope.needed[static_cast<size_t>(ref)] || is_target(scope, ref);
  const Value* leaf = (scope.saved ? scope.saved->leaves : recorder_.leaves())[static_cast<size_t>(~ref)].value.get();
  if (!leaf || !leaf->requires_grad) return false;
  if (leaf->is_leaf || leaf->freed) return is_asked_for(leaf);
  auto found = leaf->saved ? saved_traces_.find(leaf->saved->order) : saved_traces_.end();
  return found != saved_traces_.end() && leads_to_target(found->second, leaf->index);
}

// ... then of these, those that depend on one of the values.
void BackwardPass::keep_leading(Scope& scope) {
  for (size_t i = 0; i < scope.needed.size(); ++i) {
    const Entry& entry = scope.saved ? scope.saved->trace->trace.entries[i] : recorder_.entry(i);
    if (!scope.needed[i]) continue;
    const Ref* inputs = scope.saved ? scope.saved->trace->trace.inputs(entry) : recorder_.inputs(entry);
    scope.needed[i] = 0;
    for (uint32_t k = 0; k < entry.count && entry.requires_grad(); ++k) {
      if (entry.flows_to(k) && leads_to_target(scope, inputs[k])) scope.needed[i] = 1;
    }
  }
}

bool BackwardPass::mark_needed() {
  open_.needed.assign(recorder_.size(), 0);
  reach(request_.root);
  for (auto [root, seed] : request_.more) reach(root);
  reach_inputs(open_);
  for (auto& [order, scope] : saved_traces_) reach_inputs(scope);
  for (auto scope = saved_traces_.rbegin(); scope != saved_traces_.rend(); ++scope) keep_leading(scope->second);
  keep_leading(open_);
  for (const Value* dead_end : dead_ends_) {
    const auto leads = [dead_end](Value* target) { return may_depend_on(dead_end, target); };
    if (std::any_of(request_.targets.begin(), request_.targets.end(), leads)) return raise(kSecondPass);
  }
  return true;
}

bool BackwardPass::walk(Scope& scope) {
  std::vector<std::pair<size_t, GradientSlot*>> first = first_readers(scope);
  for (size_t i = scope.cotangents.size(); i-- > 0;) {
    if (!settle_blocks(scope, static_cast<Ref>(i))) return false;
    if (!scope.terms.empty() && !settle(scope, i)) return false;
    if (scope.cotangents[i] != kNoRef) {
      if (!visit(scope, i)) return false;
    } else if (!scope.vanishing.empty() && scope.vanishing[i]) {
      if (!visit_vanishing(scope, i)) return false;
    } else if (!scope.undefined.empty() && scope.undefined[i] && !visit_undefined(scope, i)) {
      return false;
    }
    for (; !first.empty() && first.back().first == i; first.pop_back()) {
      auto sum = sum_of_.find(first.back().second);
      if (sum != sum_of_.end() && !settle_slot(sums_[sum->second])) return false;
    }
  }
  return true;
}

// The seed of a root: the given cotangent, or ones.
bool BackwardPass::seed(Value* root, Value* given, Ref* out) {
  if (given) {
    *out = given->pending ? given->index : recorder_.leaf_reference(given);
    return !PyErr_Occurred();
  }
  return record_filled(hooks.ones, root->type, {}, out);
}

// Records a value of this type by the operation that the hook names for it.
bool BackwardPass::record_filled(PyObject* hook, Type* filled, const Origin& origin, Ref* out) {
  const uint64_t stamp = recorder_.stamp();
  PyObject* type = python_type(filled);
  PyObject* made = type ? PyObject_CallFunctionObjArgs(hook, type, nullptr) : nullptr;
  if (!made) return false;
  PyObject *op, *attrs;
  OpInstanceRef instance;
  if (PyArg_ParseTuple(made, "OO", &op, &attrs)) {
    Operation* operation = operation_of(op);
    const AttributesRef attributes = operation ? attributes_of(attrs) : nullptr;
    if (attributes) instance = found([&] { return op_instance_of(operation, attributes, nullptr, 0, nullptr); });
  }
  Py_DECREF(made);
  return instance && is_open(stamp) && record(instance, nullptr, 0, 0, origin, out);
}

bool BackwardPass::start(Value* root, Ref cotangent) {
  Destination destination;
  if (root->pending) destination = Destination{&open_, root->index, nullptr};
  else if (!find_leaf(root, kNoRef, &destination)) return false;
  return give(destination, cotangent);
}

// `.grad` of leaves as references of the open trace, the same in each repetition of a pass.
bool BackwardPass::find_starts() {
  const uint64_t stamp = recorder_.stamp();
  const size_t count = request_.accumulates ? recorder_.leaves().size() : 0;
  for (size_t k = 0; k < count; ++k) {
    const ValueRef leaf = recorder_.leaves()[k].value;
    GradientSlot* slot = leaf && leaf->is_leaf && leaf->requires_grad ? leaf->slot : nullptr;
    each_seen_ = each_seen_ || (slot && slot->calls_python());
    if (!slot || !slot->gradient) continue;
    auto [start, fresh] = starts_.try_emplace(slot, kNoRef);
    if (fresh && !find_start(slot, leaf->type, &start->second)) return false;
    if (recorder_.stamp() == stamp) continue;
    // Reading a view calls Python, where a signal handler may have run the trace; the pass has recorded nothing yet.
    starts_.clear();
    held_.clear();
    return find_starts();
  }
  return true;
}

// kNoRef if the gradient of the pass is computed by itself, and then added to `.grad`, if that is set. Whoever asks looks whether
// the trace has run meanwhile.
bool BackwardPass::find_start(GradientSlot* slot, Type* type, Ref* out) {
  *out = kNoRef;
  if (!request_.accumulates || slot->intermediate || !slot->gradient) return true;
  const uint64_t stamp = recorder_.stamp();
  const Owned gradient(Py_NewRef(slot->gradient));
  auto* tensor = reinterpret_cast<PyTensor*>(gradient.object);
  const UsedValue held(current_value(tensor));
  if (!held) return false;
  if (recorder_.stamp() != stamp) return true;
  const bool cut = held->requires_grad && (tensor->detached || held->is_leaf);
  if (held->type != type || held->declared || cut) return true;
  if ((recorder_.is_elsewhere(held) || held->failed) && !realise(held)) return false;
  if (recorder_.stamp() != stamp) return true;
  *out = held->pending ? held->index : recorder_.leaf_reference(held);
  each_seen_ = !held_.insert(root_of(tensor)).second || each_seen_;
  return !PyErr_Occurred();
}

bool BackwardPass::run(std::vector<FoundGradient>* found) {
  if (!find_starts()) return false;
  Value* root = request_.root;
  bool in_open = root->pending;
  Ref given = kNoRef;
  if (request_.seed && !seed(root, request_.seed, &given)) return false;
  if (in_open && request_.targets.empty() && request_.more.empty() && replay(found, given)) return true;
  sole_ = in_open ? nullptr : sole_trace();
  bool replayed = false;
  if (sole_ && !replay_over(*sole_, found, &replayed)) return false;
  if (replayed) return true;
  begin_ = recorder_.size();
  size_t leaves_before = recorder_.leaves().size();
  open_.cotangents.assign(begin_, kNoRef);
  Ref first = given;
  if (first == kNoRef && !seed(root, nullptr, &first)) return false;
  if (!request_.targets.empty() && !mark_needed()) return false;
  if (!start(root, first)) return false;
  for (auto [other, cotangent] : request_.more) {
    if (!seed(other, cotangent, &first) || !start(other, first)) return false;
  }
  if (!walk(open_)) return false;
  BackwardEvent over{};
  bool sole_fits = sole_ && begin_ == 0 && leaves_before == 0;
  while (!saved_traces_.empty()) {
    Scope scope = std::move(saved_traces_.begin()->second);
    saved_traces_.erase(saved_traces_.begin());
    if (!walk(scope)) return false;
    if (sole_ && !note_inputs(scope, over)) sole_fits = false;
  }
  if (!settle_vanishing() || !settle_slots()) return false;
  BackwardEvent event{begin_, recorder_.size(), root->index, given, request_.retain, request_.create, {}, reading_, {}, {}, 0, std::move(over.inputs), {}, freed_};
  event.read = read_.sorted();
  sole_fits = sole_fits && scopes_ == 1 && note_leaves(*sole_, event);
  for (const Sum& sum : sums_) {
    found->push_back({Watch(0, sum.slot), value_of(sum.cotangent), value_of(sum.total), value_of(sum.start), !sum.dense});
    if (in_open) event.targets.push_back({sum.target, sum.start, sum.cotangent, sum.total, !sum.dense});
  }
  for (GradientSlot* slot : undefined_) {
    if (sum_of_.try_emplace(slot, sums_.size()).second) found->push_back({Watch(0, slot), {}, {}, {}, false});
  }
  bool replayable = in_open && !crossed_ && !is_frozen_ && request_.targets.empty() && request_.more.empty() && recorder_.leaves().size() == leaves_before;
  if (replayable || sole_fits) {
    event.forward = std::move(forward_);
    event.forward.resize(event.end - begin_, kNoRef);
    recorder_.add_event(std::move(event));
  }
  return true;
}

bool run_hooks(GradientSlot* slot, PyObject** gradient) {
  if (!slot->hooks) return true;
  const Owned called(PyList_AsTuple(slot->hooks));  // a hook may remove itself, or add one
  if (!called) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(called.object); ++i) {
    PyObject* const hook = PyTuple_GET_ITEM(called.object, i);
    PyObject* changed = PyObject_CallFunctionObjArgs(hook, *gradient, nullptr);
    if (!changed) return false;
    if (changed == Py_None) {
      Py_DECREF(changed);
      continue;
    }
    if (changed == Py_NotImplemented && slot->intermediate) {
      Py_DECREF(changed);
      Py_CLEAR(*gradient);
      return true;
    }
    const Value* before = *gradient == Py_None ? nullptr : current_value(reinterpret_cast<PyTensor*>(*gradient));
    const Value* after = is_tensor(changed) ? current_value(reinterpret_cast<PyTensor*>(changed)) : nullptr;
    const bool fits = *gradient == Py_None || (before && after && after->type == before->type);
    if (!after || !fits) {
      if (!PyErr_Occurred()) {
        const Owned error(PyObject_CallFunctionObjArgs(hooks.wrong_gradient, *gradient, changed, hook, nullptr));
        if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.object)), error.object);
      }
      Py_DECREF(changed);
      return false;
    }
    Py_SETREF(*gradient, changed);
  }
  return true;
}

bool compute_elsewhere(Recorder& recorder, const std::vector<ValueRef>& values) {
  for (bool again = true; again;) {
    if (!recorder.wait_until_free()) return false;
    again = false;
    for (const ValueRef& value : values) {
      if (!recorder.is_elsewhere(value.get())) continue;
      if (!realise(value.get())) return false;
      again = true;
    }
  }
  return true;
}

namespace {

std::vector<ValueRef> values_in(const BackwardRequest& request) {
  std::vector<ValueRef> given{share(request.root)};
  for (Value* target : request.targets) given.push_back(share(target));
  if (request.seed) given.push_back(share(request.seed));
  for (auto [root, seed] : request.more) {
    given.push_back(share(root));
    if (seed) given.push_back(share(seed));
  }
  return given;
}

}  // namespace

bool differentiate(Recorder& recorder, const BackwardRequest& request, std::vector<FoundGradient>* found) {
  if (!compute_elsewhere(recorder, values_in(request))) return false;
  const bool is_hooked = recorder.has_hooks();
  // What replaces a value that gradients read stands at its position in the graph once it is computed, see BackwardPass::replaced.
  if ((is_hooked || (request.create && recorder.replaces)) && !recorder.flush()) return false;
  Recorder::Busy busy(recorder);
  return BackwardPass(recorder, request, is_hooked).run(found);
}

}  // namespace twofold
