#include "declared.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cache.h"
#include "location.h"

namespace twofold {

PyObject* declaration_listener = nullptr;

namespace {

uint64_t next_order = 0;
thread_local uint32_t forced = 0;
thread_local uint64_t operation_number = 0;

// The reference of a value in a program that declares nothing else.
std::pair<uint64_t, uint64_t> position(const Value* value) {
  return value->declared ? std::pair(value->declared->number, value->declared->order) : std::pair<uint64_t, uint64_t>();
}

ValueRef declared_value(Type* type) {
  ValueRef value(new_value(type));
  value->declared = std::make_unique<Declared>();
  value->declared->number = operation_number;
  value->declared->order = ++next_order;
  value->location = declaring_location();
  return value;
}

class Specialiser {
 public:
  Specialiser(const std::vector<ValueRef>& inputs, const std::vector<ValueRef>& outputs, const std::vector<Type*>& types,
              const Sized& sized)
      : inputs_(inputs), outputs_(outputs), types_(types), sized_(sized) {}

  std::unique_ptr<Specialisation> run();
  std::unique_ptr<ClosedTrace> close(uint64_t mark);

 private:
  bool record_all(std::vector<Ref>* refs);
  bool is_leaf(const Value* value) const;
  void collect();
  void find_targets();
  bool record(Value* value);
  bool record_gradient(Value* value);
  bool reference(const Leaf& leaf, Type* type, Ref* out);
  bool place_leaf(Value* value, Type* type);

  const std::vector<ValueRef>& inputs_;
  const std::vector<ValueRef>& outputs_;
  const std::vector<Type*>& types_;
  const Sized& sized_;
  Recorder recorder_;
  std::vector<Value*> order_;
  std::unordered_map<Value*, Ref> refs_;
  std::unordered_map<Value*, ValueRef> stand_ins_;     // for leaves and for gradient targets
  std::unordered_set<Value*> targets_, flows_;
  std::unordered_map<uint64_t, bool> groups_done_;
  std::vector<LeafSource> sources_;
  uint64_t mark_ = 0;          // declarations up to this one are captured as they are
  bool all_flow_ = false;      // gradients pass every floating leaf
};

// Whether the traversal ends here: at an input, a bound value, or one that is captured.
bool Specialiser::is_leaf(const Value* value) const {
  if (!value->declared || value->declared->order <= mark_) return true;
  return std::any_of(inputs_.begin(), inputs_.end(), [value](const ValueRef& input) { return input.get() == value; });
}

// Every declared value that the outputs depend on, in the order in which a program records.
void Specialiser::collect() {
  std::unordered_set<Value*> seen;
  std::vector<Value*> stack;
  for (const auto& output : outputs_) stack.push_back(output.get());
  while (!stack.empty()) {
    Value* value = stack.back();
    stack.pop_back();
    if (!seen.insert(value).second) continue;
    order_.push_back(value);
    if (is_leaf(value)) continue;
    for (const Leaf& leaf : value->declared->inputs) {
      if (leaf.value) stack.push_back(leaf.value.get());
    }
  }
  std::stable_sort(order_.begin(), order_.end(), [](Value* a, Value* b) { return position(a) < position(b); });
}

void Specialiser::find_targets() {
  for (Value* value : order_) {
    if (value->declared && value->declared->is_gradient) targets_.insert(value->declared->inputs[1].value.get());
  }
}

// Inputs are added to the trace at their first use, as in define-by-run, so that both number them alike.
bool Specialiser::place_leaf(Value* value, Type* type) {
  ValueRef stand_in(new_value(type));
  if (targets_.count(value) || (all_flow_ && is_differentiable(type->dtype))) {
    stand_in->requires_grad = true;
    slot_of(stand_in.get());
    flows_.insert(value);
  }
  LeafSource source;
  source.location = value->location;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].get() == value) source.input = static_cast<int32_t>(k);
  }
  if (source.input < 0) {
    if (value->declared && value->declared->order > mark_) {
      PyErr_Format(PyExc_RuntimeError, "a placeholder (%s) is not fed", line_text(value->location).c_str());
      return false;
    }
    if (!value->declared && !all_flow_ && !realise(value)) return false;
    source.captured.value = share(value);
  }
  refs_[value] = recorder_.leaf_reference(stand_in.get());
  sources_.resize(recorder_.leaves().size());
  sources_.back() = std::move(source);
  stand_ins_.emplace(value, std::move(stand_in));
  return true;
}

bool Specialiser::reference(const Leaf& leaf, Type* type, Ref* out) {
  Value* value = leaf.value.get();
  const auto number = value ? sized_.numbers.find(value) : sized_.numbers.end();
  if (!value || number != sized_.numbers.end()) {
    const uint64_t scalar = value ? static_cast<uint64_t>(number->second) : leaf.scalar;
    *out = recorder_.scalar_reference(type, scalar);
    sources_.resize(recorder_.leaves().size());
    sources_.back().captured.scalar = scalar;
    return true;
  }
  auto found = refs_.find(value);
  if (found == refs_.end()) {
    Type* concrete = value->type;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (inputs_[k].get() == value) concrete = types_[k];
    }
    if (!place_leaf(value, concrete)) return false;
    found = refs_.find(value);
  }
  *out = found->second;
  return true;
}

bool Specialiser::record(Value* value) {
  const Declared& declared = *value->declared;
  if (declared.is_gradient) return record_gradient(value);
  std::vector<Ref> refs(declared.inputs.size());
  std::vector<Type*> types(refs.size());
  uint64_t mask = 0;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (!reference(declared.inputs[i], declared.input_types[i], &refs[i])) return false;
    types[i] = recorder_.type_of(refs[i]);
    Value* input = declared.inputs[i].value.get();
    if (input && flows_.count(input) && (declared.gradient_mask & Entry::mask_bit(i))) mask |= Entry::mask_bit(i);
  }
  const auto own = sized_.attributes.find(value);
  Attributes* attributes = own == sized_.attributes.end() ? declared.attributes : own->second;
  OpInstanceRef instance = find_op_instance(declared.operation, attributes, types.data(), types.size());
  if (!instance) {
    instance = op_instance_of(declared.operation, attributes, types.data(), types.size(), nullptr);
    if (!instance) {
      PyObject* result = PyObject_CallFunction(hooks.specialise_error, "Os", declared.operation->python,
                                               location_text(value->location).c_str());
      Py_XDECREF(result);
      return false;
    }
  }
  Ref made;
  recorder_.record_known(instance, refs.data(), refs.size(), mask, {value->location, 0}, &made);
  if ((!mask || !instance->differentiable) && targets_.count(value)) {
    // No gradient flows through this call, so the traversal would not stop at it: a copy is the target.
    Operation* copy = operation_of(hooks.copy);
    Type* type = instance->output;
    OpInstanceRef copying = copy ? op_instance_of(copy, no_attributes(), &type, 1, nullptr) : nullptr;
    if (!copying) return false;
    mask = Entry::mask_bit(0);
    const Ref original = made;
    recorder_.record_known(copying, &original, 1, mask, {value->location, 0}, &made);
  }
  refs_[value] = made;
  if (mask && instance->differentiable) flows_.insert(value);
  if (targets_.count(value)) {
    flows_.insert(value);
    ValueRef stand_in = recorder_.value_of_entry(made, true);
    stand_in->requires_grad = true;
    stand_in->is_leaf = false;
    slot_of(stand_in.get());
    stand_ins_.emplace(value, std::move(stand_in));
  }
  return true;
}

bool Specialiser::record_gradient(Value* value) {
  const Declared& declared = *value->declared;
  if (!groups_done_[declared.group]) {
    groups_done_[declared.group] = true;
    Value* root = declared.inputs[0].value.get();
    Ref root_ref, seed_ref = kNoRef;
    if (!reference(declared.inputs[0], root->type, &root_ref)) return false;
    ValueRef root_value = root_ref >= 0 ? recorder_.value_of_entry(root_ref, true) : stand_ins_.at(root);
    ValueRef seed;
    if (declared.inputs.size() > 2) {
      Value* given = declared.inputs[2].value.get();
      if (!reference(declared.inputs[2], given->type, &seed_ref)) return false;
      seed = seed_ref >= 0 ? recorder_.value_of_entry(seed_ref, false) : stand_ins_.at(given);
    }
    BackwardRequest request{root_value.get(), seed.get(), true, true, value->location, false, {}};
    std::vector<FoundGradient> found;
    if (!differentiate(recorder_, request, &found)) return false;
    sources_.resize(recorder_.leaves().size());
    for (Value* other : order_) {
      if (!other->declared || !other->declared->is_gradient || other->declared->group != declared.group) continue;
      auto target = stand_ins_.find(other->declared->inputs[1].value.get());
      for (auto& item : found) {
        if (target != stand_ins_.end() && item.watch.slot == target->second->slot) {
          refs_[other] = item.gradient->pending ? item.gradient->index : recorder_.leaf_reference(item.gradient.get());
          stand_ins_.emplace(other, item.gradient);
          flows_.insert(other);
        }
      }
    }
  }
  if (refs_.count(value)) return true;
  // No path: zeros of the target's type.
  Ref target;
  if (!reference(declared.inputs[1], declared.inputs[1].value->type, &target)) return false;
  PyObject* type = python_type(recorder_.type_of(target));
  PyObject* made = type ? PyObject_CallFunctionObjArgs(hooks.zeros, type, nullptr) : nullptr;
  PyObject *op, *attrs;
  OpInstanceRef instance;
  if (made && PyArg_ParseTuple(made, "OO", &op, &attrs)) {
    const AttributesRef attributes = attributes_of(attrs);
    instance = op_instance_of(operation_of(op), attributes, nullptr, 0, nullptr);
  }
  Py_XDECREF(made);
  return instance && recorder_.record_known(instance, nullptr, 0, 0, {value->location, 0}, &refs_[value]);
}

// Records all that the outputs depend on; `refs` are their references.
bool Specialiser::record_all(std::vector<Ref>* refs) {
  collect();
  find_targets();
  for (Value* value : order_) {
    if (is_leaf(value) || (!value->declared->operation && !value->declared->is_gradient)) continue;
    if (!record(value)) return false;
  }
  refs->resize(outputs_.size());
  for (size_t i = 0; i < refs->size(); ++i) {
    if (!reference(Leaf{outputs_[i], 0}, outputs_[i]->type, &(*refs)[i])) return false;
  }
  return true;
}

std::unique_ptr<ClosedTrace> Specialiser::close(uint64_t mark) {
  mark_ = mark;
  all_flow_ = true;
  std::vector<Ref> refs;
  if (!record_all(&refs)) return nullptr;
  auto made = std::make_unique<ClosedTrace>(ClosedTrace{CanonicalTrace(recorder_.trace(), refs), {}, {}});
  for (int32_t entry : made->canonical.entry_source) made->provenance.push_back(recorder_.provenance(static_cast<size_t>(entry)));
  for (int32_t leaf : made->canonical.leaf_source) made->sources.push_back(sources_[static_cast<size_t>(leaf)]);
  return made;
}

std::unique_ptr<Specialisation> Specialiser::run() {
  std::vector<Ref> refs;
  if (!record_all(&refs)) return nullptr;
  auto made = std::make_unique<Specialisation>();
  made->types = types_;
  // In order of declaration, as define-by-run returns live values, so that both faces have one executable.
  std::vector<Ref> wanted;
  std::copy_if(refs.begin(), refs.end(), std::back_inserter(wanted), [](Ref ref) { return ref >= 0; });
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (Ref ref : refs) {
    if (ref >= 0) {
      auto position = std::lower_bound(wanted.begin(), wanted.end(), ref);
      made->outputs.push_back({static_cast<int32_t>(position - wanted.begin()), -1, ValueRef()});
    } else {
      const LeafSource& source = sources_[static_cast<size_t>(~ref)];
      made->outputs.push_back({-1, source.input, source.captured.value});
    }
  }
  CanonicalTrace canonical(recorder_.trace(), wanted);
  for (int32_t leaf : canonical.leaf_source) made->sources.push_back(sources_[static_cast<size_t>(leaf)]);
  for (size_t i = 0; i < recorder_.size(); ++i) made->provenance.push_back(recorder_.provenance(i));
  made->entry_source = canonical.entry_source;
  if (!wanted.empty()) made->executable = executable_of(std::move(canonical));
  return made;
}

}  // namespace

size_t Specialisation::memory() const {
  return sizeof *this + memory_of(types) + memory_of(provenance) + memory_of(entry_source) + memory_of(sources) + memory_of(outputs);
}

RunProvenance Specialisation::run_provenance() const {
  constexpr auto location = [](const void* leaves, size_t leaf) { return static_cast<const LeafSource*>(leaves)[leaf].location; };
  return {provenance.data(), entry_source.data(), sources.data(), location};
}

uint32_t declare_at_location(uint32_t location) { return std::exchange(forced, location); }

uint64_t declare_as(uint64_t number) { return std::exchange(operation_number, number); }

uint32_t declaring_location() { return forced ? forced : capture_location(); }

uint32_t forced_location() { return forced; }

bool is_symbolic(const Value* value) { return value->declared != nullptr; }

ValueRef declare_placeholder(Type* type) { return declared_value(type); }

ValueRef declare_call(Operation* op, Attributes* attributes, Operand* inputs, size_t count, PyObject* const* arguments,
                      bool grad_enabled) {
  std::vector<Type*> types(count);
  for (size_t i = 0; i < count; ++i) types[i] = inputs[i].value ? inputs[i].value->type : inputs[i].scalar_type;
  OpInstanceRef instance = op_instance_of(op, attributes, types.data(), count, arguments);
  if (!instance) return ValueRef();
  ValueRef value = declared_value(instance->output);
  Declared& declared = *value->declared;
  declared.operation = op;
  declared.attributes = attributes;
  declared.input_types = types;
  for (size_t i = 0; i < count; ++i) {
    Value* input = inputs[i].value;
    declared.inputs.push_back(input ? Leaf{share(input), 0} : Leaf{ValueRef(), inputs[i].scalar});
    if (input && grad_enabled && !inputs[i].detached && is_differentiable(input->type->dtype)) declared.gradient_mask |= Entry::mask_bit(i);
  }
  if (declaration_listener && declaration_listener != Py_None) {
    PyObject* handle = wrap(value);
    PyObject* seen = handle ? PyObject_CallFunctionObjArgs(declaration_listener, handle, nullptr) : nullptr;
    Py_XDECREF(handle);
    if (!seen) return ValueRef();
    Py_DECREF(seen);
  }
  return value;
}

ValueRef declare_gradient(Value* root, Value* seed, Value* target, uint64_t group) {
  ValueRef value = declared_value(target->type);
  Declared& declared = *value->declared;
  declared.is_gradient = true;
  declared.group = group;
  declared.inputs = {Leaf{share(root), 0}, Leaf{share(target), 0}};
  if (seed) declared.inputs.push_back(Leaf{share(seed), 0});
  return value;
}

uint64_t declaration_mark() { return next_order; }

std::unique_ptr<ClosedTrace> close_trace(const std::vector<ValueRef>& inputs, const std::vector<ValueRef>& outputs,
                                         uint64_t mark) {
  std::vector<Type*> types;
  for (const auto& input : inputs) types.push_back(input->type);
  return Specialiser(inputs, outputs, types, {}).close(mark);
}

std::unique_ptr<Specialisation> specialise(const std::vector<ValueRef>& inputs, const std::vector<ValueRef>& outputs,
                                           const std::vector<Type*>& types, const Sized& sized) {
  return Specialiser(inputs, outputs, types, sized).run();
}

}  // namespace twofold
