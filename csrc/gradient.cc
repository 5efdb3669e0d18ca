#include <Python.h>

#include "gradient.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tensor.h"

namespace twofold {
namespace {

constexpr const char* kSecondPass =
    "backward: the graph was used up by an earlier backward pass. Pass retain_graph=True to the first call.";

// One trace that the cotangents pass through: the open one, or one that has run.
struct Scope {
  std::shared_ptr<History> history;  // null for the open trace
  std::vector<Ref> cotangents;       // by entry, references of the open trace
  std::unordered_map<Ref, Ref> translated;
};

class Walker {
 public:
  Walker(Recorder& recorder, const BackwardRequest& request) : recorder_(recorder), request_(request) {}

  bool run(std::vector<FoundGradient>* found);

 private:
  bool seed(Value* root, Value* given, Ref* out);
  bool start(Value* root, Ref cotangent);
  bool replay(std::vector<FoundGradient>* found, Ref seed);
  bool walk(Scope& scope);
  bool visit(Scope& scope, size_t index);
  bool cotangent_of(Scope& scope, size_t index, const Entry& entry, const Ref* inputs, uint16_t k);
  bool translate(Scope& scope, Ref ref, Ref* out);
  bool give(Scope& scope, Ref target, Ref cotangent);
  bool give_leaf(Value* leaf, Ref target, Ref cotangent);
  bool give_slot(GradientSlot* slot, Ref target, Ref cotangent);
  bool add(Ref* sum, Ref term);
  bool requires_grad(Ref ref) const;
  Scope& scope_of(const std::shared_ptr<History>& history);
  bool capture(Scope& scope, size_t index);
  Type* type_of(Ref ref) const;
  ValueRef value_of(Ref ref);
  bool call_hooks(Scope& scope, size_t index, GradientSlot* slot);
  std::vector<std::pair<Ref*, ValueRef>> hold(Scope& scope);
  bool refer_again(Scope& scope, const std::vector<std::pair<Ref*, ValueRef>>& held);

  struct Sum {
    GradientSlot* slot;
    Ref target, cotangent;
  };

  Recorder& recorder_;
  const BackwardRequest& request_;
  Scope open_;
  std::map<uint64_t, Scope, std::greater<>> histories_;
  std::vector<Sum> sums_;
  std::unordered_map<GradientSlot*, size_t> sum_of_;
  std::vector<uint32_t> visited_;
  bool crossed_ = false;
};

ValueRef own_value(PyObject* tensor) {
  Value* value = tensor ? current_value(reinterpret_cast<PyTensor*>(tensor)) : nullptr;
  return value ? share(value) : ValueRef();
}

bool raise(const char* text) {
  PyErr_SetString(PyExc_RuntimeError, text);
  return false;
}

bool Walker::requires_grad(Ref ref) const {
  if (ref >= 0) return recorder_.entry(static_cast<size_t>(ref)).requires_grad();
  const Leaf& leaf = recorder_.leaves()[static_cast<size_t>(~ref)];
  return leaf.value && leaf.value->requires_grad;
}

bool Walker::add(Ref* sum, Ref term) {
  if (*sum == kNoRef) {
    *sum = term;
    return true;
  }
  static Operation* const accumulate = operation_of(hooks.accumulate);
  Ref inputs[2] = {*sum, term};
  Type* type = type_of(*sum);
  Type* types[2] = {type, type};
  Signature* signature = signature_of(accumulate, no_attributes(), types, 2, nullptr);
  if (!signature) return false;
  uint64_t mask = 0;
  for (size_t i = 0; request_.create && i < 2; ++i) mask |= requires_grad(inputs[i]) ? Entry::mask_bit(i) : 0;
  return recorder_.record_known(signature, inputs, 2, mask, 0, sum);
}

Scope& Walker::scope_of(const std::shared_ptr<History>& history) {
  crossed_ = true;
  Scope& scope = histories_[history->order];
  if (!scope.history) {
    scope.history = history;
    scope.cotangents.assign(history->trace->trace.entries.size(), kNoRef);
    if (history->consumed.empty()) history->consumed = history->trace->consumed;
    history->consumed.resize(scope.cotangents.size(), 0);
  }
  return scope;
}

bool Walker::give_slot(GradientSlot* slot, Ref target, Ref cotangent) {
  auto [place, fresh] = sum_of_.try_emplace(slot, sums_.size());
  if (fresh) sums_.push_back(Sum{slot, target, kNoRef});
  return add(&sums_[place->second].cotangent, cotangent);
}

bool Walker::give_leaf(Value* leaf, Ref target, Ref cotangent) {
  if (!leaf || !leaf->requires_grad) return true;
  if (leaf->is_leaf) return leaf->slot ? give_slot(leaf->slot, target, cotangent) : true;
  if (leaf->consumed) return raise(kSecondPass);
  if (!leaf->history) return true;
  Scope& scope = scope_of(leaf->history);
  return add(&scope.cotangents[static_cast<size_t>(leaf->index)], cotangent);
}

bool Walker::give(Scope& scope, Ref target, Ref cotangent) {
  if (target >= 0) return add(&scope.cotangents[static_cast<size_t>(target)], cotangent);
  size_t number = static_cast<size_t>(~target);
  ValueRef leaf = scope.history ? scope.history->leaves[number].value : recorder_.leaves()[number].value;
  return give_leaf(leaf.get(), target, cotangent);
}

// A reference of the scope's trace as one of the open trace.
bool Walker::translate(Scope& scope, Ref ref, Ref* out) {
  if (!scope.history) {
    *out = ref;
    return true;
  }
  auto [place, fresh] = scope.translated.try_emplace(ref, 0);
  if (fresh) {
    const History& history = *scope.history;
    const Trace& trace = history.trace->trace;
    if (ref < 0) {
      const Leaf& leaf = history.leaves[static_cast<size_t>(~ref)];
      place->second = leaf.value ? recorder_.leaf_reference(leaf.value.get())
                                 : recorder_.scalar_reference(trace.leaves[static_cast<size_t>(~ref)], leaf.scalar);
    } else {
      size_t index = static_cast<size_t>(ref);
      if (!history.kept[index]) return raise("backward: a value that the gradient reads was not kept");
      ValueRef value(new_value(trace.entries[index].signature->output));
      value->buffer = history.kept[index];
      value->requires_grad = trace.entries[index].requires_grad();
      value->is_leaf = !value->requires_grad;
      value->index = ref;
      if (value->requires_grad) value->history = scope.history;
      place->second = recorder_.leaf_reference(value.get());
    }
    if (PyErr_Occurred()) return false;
  }
  *out = place->second;
  return true;
}

bool Walker::cotangent_of(Scope& scope, size_t index, const Entry& entry, const Ref* inputs, uint16_t k) {
  const Gradient* gradient = gradient_of(entry.signature, k);
  if (!gradient) return false;
  if (gradient->state != Gradient::kKnown) return true;
  std::vector<Ref> refs(gradient->used.size());
  uint64_t mask = 0;
  for (size_t i = 0; i < refs.size(); ++i) {
    int32_t used = gradient->used[i];
    if (used == -1) {
      refs[i] = scope.cotangents[index];
    } else if (!translate(scope, used == -2 ? static_cast<Ref>(index) : inputs[used], &refs[i])) {
      return false;
    }
    if (request_.create && requires_grad(refs[i])) mask |= Entry::mask_bit(i);
  }
  Ref made;
  recorder_.record_known(gradient->signature, refs.data(), refs.size(), mask, entry.location, &made);
  return give(scope, inputs[k], made);
}

Type* Walker::type_of(Ref ref) const {
  if (ref >= 0) return recorder_.entry(static_cast<size_t>(ref)).signature->output;
  return recorder_.leaves()[static_cast<size_t>(~ref)].value->type;
}

ValueRef Walker::value_of(Ref ref) {
  if (ref >= 0) return recorder_.value_of_entry(ref, request_.create);
  return recorder_.leaves()[static_cast<size_t>(~ref)].value;
}

// All cotangents that are still to be used, as values, which outlast a run of the open trace.
std::vector<std::pair<Ref*, ValueRef>> Walker::hold(Scope& scope) {
  std::vector<std::pair<Ref*, ValueRef>> held;
  auto hold_one = [&](Ref& ref) {
    if (ref != kNoRef) held.emplace_back(&ref, value_of(ref));
  };
  for (Ref& ref : scope.cotangents) hold_one(ref);
  for (auto& [order, other] : histories_) {
    for (Ref& ref : other.cotangents) hold_one(ref);
  }
  for (Sum& sum : sums_) hold_one(sum.cotangent);
  return held;
}

bool Walker::refer_again(Scope& scope, const std::vector<std::pair<Ref*, ValueRef>>& held) {
  for (auto& [place, value] : held) {
    if (value->failed) return realise(value.get());
    *place = value->pending ? value->index : recorder_.leaf_reference(value.get());
    if (PyErr_Occurred()) return false;
  }
  scope.translated.clear();
  for (auto& [order, other] : histories_) other.translated.clear();
  return true;
}

// The hooks see a tensor and may do with it what programs do; asking for its value runs the trace that the
// cotangents stand in. What they return takes the cotangent's place.
bool Walker::call_hooks(Scope& scope, size_t index, GradientSlot* slot) {
  uint64_t stamp = recorder_.stamp();
  auto held = hold(scope);
  ValueRef before = value_of(scope.cotangents[index]);
  PyObject* gradient = wrap(before);
  bool mode = std::exchange(recorder_.grad_enabled, request_.create);
  bool done = gradient && run_hooks(slot, &gradient);
  recorder_.grad_enabled = mode;
  ValueRef after = done && is_tensor(gradient) ? own_value(gradient) : ValueRef();
  if (done && (!after || after->type != before->type)) {
    done = PyErr_Format(PyExc_RuntimeError, "register_hook: a hook was given a gradient of %s and returned %s. Return its like, or None.",
                        before->type->text().c_str(), after ? after->type->text().c_str() : Py_TYPE(gradient)->tp_name);
  }
  done = done && (recorder_.stamp() == stamp || refer_again(scope, held));
  if (done && after.get() != before.get()) {
    done = !after->pending || after->owner == &recorder_ || realise(after.get());
    if (done) scope.cotangents[index] = after->pending ? after->index : recorder_.leaf_reference(after.get());
  }
  Py_XDECREF(gradient);
  return done && !PyErr_Occurred();
}

// Hands the cotangent to those who asked for it, after the hooks of the value have seen it.
bool Walker::capture(Scope& scope, size_t index) {
  if (!scope.history) {
    Value* value = recorder_.live(static_cast<Ref>(index));
    if (value && value->slot && !value->is_leaf) give_slot(value->slot, static_cast<Ref>(index), scope.cotangents[index]);
    return true;
  }
  GradientSlot* watched = watched_at(scope.history->watched, index);
  if (watched && watched->has_hooks() && !call_hooks(scope, index, watched)) return false;
  if (watched && watched->retains) give_slot(watched, kNoRef, scope.cotangents[index]);
  for (Value* target : request_.targets) {
    if (target->history != scope.history || target->index != static_cast<int32_t>(index) || !target->slot) continue;
    if (target->slot != watched || !watched->retains) give_slot(target->slot, kNoRef, scope.cotangents[index]);
  }
  return true;
}

bool Walker::visit(Scope& scope, size_t index) {
  const Trace* trace = scope.history ? &scope.history->trace->trace : nullptr;
  Entry entry = trace ? trace->entries[index] : recorder_.entry(index);
  if (!entry.requires_grad()) return true;
  if (!capture(scope, index)) return false;
  if (scope.history ? scope.history->consumed[index] : recorder_.is_consumed(index)) return raise(kSecondPass);
  const Ref* source = trace ? trace->inputs(entry) : recorder_.inputs(entry);
  std::vector<Ref> inputs(source, source + entry.count);
  for (uint16_t k = 0; k < entry.count; ++k) {
    if (entry.flows_to(k) && !cotangent_of(scope, index, entry, inputs.data(), k)) return false;
  }
  if (!request_.retain) {
    if (scope.history) scope.history->consumed[index] = 1;
    else visited_.push_back(static_cast<uint32_t>(index));
  }
  return true;
}

bool Walker::walk(Scope& scope) {
  for (size_t i = scope.cotangents.size(); i-- > 0;) {
    if (scope.cotangents[i] != kNoRef && !visit(scope, i)) return false;
  }
  return true;
}

// The cotangent that a root starts with: the one given, or ones.
bool Walker::seed(Value* root, Value* given, Ref* out) {
  if (given) {
    *out = given->pending ? given->index : recorder_.leaf_reference(given);
    return !PyErr_Occurred();
  }
  PyObject* type = python_type(root->type);
  PyObject* made = type ? PyObject_CallFunctionObjArgs(hooks.ones, type, nullptr) : nullptr;
  if (!made) return false;
  PyObject *op, *attrs;
  Signature* signature = nullptr;
  if (PyArg_ParseTuple(made, "OO", &op, &attrs)) {
    Operation* operation = operation_of(op);
    Attributes* attributes = operation ? attributes_of(attrs) : nullptr;
    if (attributes) signature = signature_of(operation, attributes, nullptr, 0, nullptr);
  }
  Py_DECREF(made);
  return signature && recorder_.record_known(signature, nullptr, 0, 0, 0, out);
}

bool Walker::start(Value* root, Ref cotangent) {
  if (root->consumed) return raise(kSecondPass);
  return root->pending ? add(&open_.cotangents[static_cast<size_t>(root->index)], cotangent) : give_leaf(root, kNoRef, cotangent);
}

bool Walker::replay(std::vector<FoundGradient>* found, Ref seed) {
  const BackwardEvent* event;
  if (!recorder_.replay_backward(request_.root->index, seed, request_.retain, request_.create, &event)) return false;
  for (auto [target, cotangent] : event->gradients) {
    Value* value = target >= 0 ? recorder_.live(target) : recorder_.leaves()[static_cast<size_t>(~target)].value.get();
    if (value && value->slot) found->push_back({value->slot, recorder_.value_of_entry(cotangent, request_.create)});
  }
  return true;
}

bool Walker::run(std::vector<FoundGradient>* found) {
  Value* root = request_.root;
  bool in_open = root->pending;
  Ref given = kNoRef;
  if (request_.seed && !seed(root, request_.seed, &given)) return false;
  if (in_open && request_.targets.empty() && replay(found, given)) return true;
  uint32_t begin = recorder_.size();
  size_t leaves_before = recorder_.leaves().size();
  open_.cotangents.assign(begin, kNoRef);
  Ref first = given;
  if (first == kNoRef && !seed(root, nullptr, &first)) return false;
  if (!start(root, first)) return false;
  for (auto [other, cotangent] : request_.more) {
    if (!seed(other, cotangent, &first) || !start(other, first)) return false;
  }
  if (!walk(open_)) return false;
  if (crossed_) {
    recorder_.mark_consumed(visited_);  // now, since hooks farther up may run this trace
    visited_.clear();
  }
  while (!histories_.empty()) {
    Scope scope = std::move(histories_.begin()->second);
    histories_.erase(histories_.begin());
    if (!walk(scope)) return false;
  }
  BackwardEvent event{begin, recorder_.size(), root->index, given, request_.retain, request_.create, {}, visited_};
  for (const Sum& sum : sums_) {
    found->push_back({sum.slot, value_of(sum.cotangent)});
    event.gradients.push_back({sum.target, sum.cotangent});
  }
  bool replayable = in_open && !crossed_ && request_.targets.empty() && recorder_.leaves().size() == leaves_before;
  if (replayable) {
    recorder_.add_event(std::move(event));
  } else {
    recorder_.mark_consumed(visited_);
  }
  return true;
}

}  // namespace

bool run_hooks(GradientSlot* slot, PyObject** gradient) {
  if (!slot->hooks) return true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(slot->hooks); ++i) {
    PyObject* changed = PyObject_CallFunctionObjArgs(PyList_GET_ITEM(slot->hooks, i), *gradient, nullptr);
    if (!changed) return false;
    if (changed == Py_None) {
      Py_DECREF(changed);
    } else {
      Py_SETREF(*gradient, changed);
    }
  }
  return true;
}

bool differentiate(Recorder& recorder, const BackwardRequest& request, std::vector<FoundGradient>* found) {
  if (request.root->consumed) return raise(kSecondPass);
  if (!recorder.wait_until_free()) return false;
  if (recorder.has_hooks() && !recorder.flush()) return false;
  Recorder::Busy busy(recorder);
  return Walker(recorder, request).run(found);
}

}  // namespace twofold
