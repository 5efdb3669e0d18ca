// Graph traversal from values to the calls that made them, declared or recorded, for function transforms.
#include <Python.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "gradient.h"
#include "guard.h"
#include "owned.h"
#include "tensor.h"

namespace twofold {
namespace {

// The producer of a value: an entry of a trace that has run, of the open one, or a declaration.
struct Identity {
  enum Kind : uint8_t { kSaved, kOpen, kDeclared, kLeaf };
  Kind kind;
  uint64_t group, index;  // saved trace and entry, or order of declaration, or address

  auto order() const { return std::tuple(kind, group, index); }
};

Identity identity_of(const Value* value) {
  if (value->declared && (value->declared->operation || value->declared->is_gradient)) return {Identity::kDeclared, 0, value->declared->order};
  bool made = value->requires_grad && !value->is_leaf && !value->declared;
  if (made && value->pending && value->owner == &Recorder::current()) return {Identity::kOpen, 0, static_cast<uint64_t>(value->index)};
  if (made && !value->pending && value->saved) return {Identity::kSaved, value->saved->order, static_cast<uint64_t>(value->index)};
  return {Identity::kLeaf, 0, reinterpret_cast<uint64_t>(value)};
}

// A number for each identity; handles of one value share it until a trace runs.
uint64_t key_of(const Identity& identity) {
  uint64_t index = identity.kind == Identity::kLeaf ? identity.index >> 2 : identity.group << 32 ^ identity.index;
  return index << 2 | identity.kind;
}

// A call: its result, operands, and the inputs to which gradients flow.
struct Call {
  Identity identity;
  ValueRef result;               // null if a trace that has run did not keep it, and it has no hooks
  Operation* operation;          // null for a declared gradient
  AttributesRef attributes;
  std::vector<uint64_t> keys;    // of the inputs
  std::vector<Leaf> inputs;      // values (null if not kept) or scalars
  std::vector<Type*> types;
  uint64_t mask;
};

class CallTraversal {
 public:
  CallTraversal(bool recorded) : recorded_(recorded) {}

  void start(const ValueRef& value) { push(value); }
  bool run();
  // Whether gradients reach a leaf or tracked value that is not in `targets`.
  bool starts_outside(const std::unordered_set<uint64_t>& targets) const {
    return std::any_of(starts_.begin(), starts_.end(), [&](uint64_t key) { return !targets.count(key); });
  }

  std::vector<Call> calls;

 private:
  uint64_t push(const ValueRef& value);
  void declared(const ValueRef& value, const Identity& identity);
  bool open_entry(size_t index);
  bool saved_entry(const std::shared_ptr<SavedTrace>& saved, size_t index);
  // The key of an input, which is visited if a gradient flows there.
  uint64_t input_key(const Call& call, const Entry& entry, uint32_t i, const ValueRef& value);

  bool recorded_;
  std::vector<ValueRef> stack_;
  std::unordered_set<uint64_t> seen_, starts_;
};

uint64_t CallTraversal::push(const ValueRef& value) {
  Identity identity = identity_of(value.get());
  uint64_t key = key_of(identity);
  if (identity.kind == Identity::kLeaf && value->requires_grad && value->is_leaf && !value->declared) starts_.insert(key);
  bool wanted = identity.kind == Identity::kDeclared || (recorded_ && identity.kind != Identity::kLeaf);
  if (wanted && seen_.insert(key).second) stack_.push_back(value);
  return key;
}

void CallTraversal::declared(const ValueRef& value, const Identity& identity) {
  const Declared& source = *value->declared;
  Call call{identity, value, source.operation, source.attributes, {}, source.inputs, source.input_types, source.gradient_mask};
  for (const Leaf& leaf : source.inputs) call.keys.push_back(leaf.value ? push(leaf.value) : 0);
  calls.push_back(std::move(call));
}

uint64_t CallTraversal::input_key(const Call& call, const Entry& entry, uint32_t i, const ValueRef& value) {
  if (!value || !entry.flows_to(i)) return 0;
  if (!value->requires_grad) starts_.insert(key_of(call.identity));
  return push(value);
}

bool CallTraversal::open_entry(size_t index) {
  Recorder& recorder = Recorder::current();
  Entry entry = recorder.entry(index);
  if (!entry.requires_grad()) return true;
  OpInstance* instance = entry.instance;
  Call call{{Identity::kOpen, 0, index}, recorder.value_of_entry(static_cast<Ref>(index), true), instance->operation, instance->attributes,
            {}, {}, instance->inputs, entry.gradient_mask};
  const Ref* refs = recorder.inputs(entry);
  for (uint32_t i = 0; i < entry.count; ++i) {
    Leaf leaf = refs[i] >= 0 ? Leaf{recorder.value_of_entry(refs[i], true), 0} : recorder.leaves()[static_cast<size_t>(~refs[i])];
    call.keys.push_back(input_key(call, entry, i, leaf.value));
    call.inputs.push_back(std::move(leaf));
  }
  calls.push_back(std::move(call));
  return true;
}

// An entry whose value no gradient reads, for the hooks on its cotangent: its elements are zeros.
ValueRef unread_value(const std::shared_ptr<SavedTrace>& saved, size_t index) {
  ValueRef value = kept_value(saved, index);
  value->buffer = BufferRef(new_buffer(static_cast<size_t>(value->type->nbytes)));
  std::memset(value->buffer->data, 0, value->buffer->nbytes);
  return value;
}

bool CallTraversal::saved_entry(const std::shared_ptr<SavedTrace>& saved, size_t index) {
  const Trace& trace = saved->trace->trace;
  const Entry& entry = trace.entries[index];
  if (!entry.requires_grad()) return true;
  if (index < saved->consumed.size() && saved->consumed[index] & kConsumed) {
    PyErr_SetString(PyExc_RuntimeError, kSecondPass);
    return false;
  }
  OpInstance* instance = entry.instance;
  Call call{{Identity::kSaved, saved->order, index}, ValueRef(), instance->operation, instance->attributes, {}, {}, instance->inputs,
            entry.gradient_mask};
  const GradientSlot* watched = watched_at(saved->watched, index);
  if (saved->kept[index]) call.result = kept_value(saved, index);
  else if (watched && watched->has_hooks()) call.result = unread_value(saved, index);
  const Ref* refs = trace.inputs(entry);
  for (uint32_t i = 0; i < entry.count; ++i) {
    Leaf leaf;
    uint64_t key = 0;
    if (refs[i] < 0) {
      leaf = saved->leaves[static_cast<size_t>(~refs[i])];
      key = input_key(call, entry, i, leaf.value);
    } else {
      ValueRef value = kept_value(saved, static_cast<size_t>(refs[i]));
      key = input_key(call, entry, i, value);
      if (value->buffer) leaf.value = value;
    }
    call.keys.push_back(key);
    call.inputs.push_back(std::move(leaf));
  }
  calls.push_back(std::move(call));
  return true;
}

bool CallTraversal::run() {
  while (!stack_.empty()) {
    ValueRef value = std::move(stack_.back());
    stack_.pop_back();
    Identity identity = identity_of(value.get());
    if (identity.kind == Identity::kDeclared) declared(value, identity);
    else if (identity.kind == Identity::kOpen && !open_entry(identity.index)) return false;
    else if (identity.kind == Identity::kSaved && !saved_entry(value->saved, identity.index)) return false;
  }
  std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.identity.order() < b.identity.order(); });
  return true;
}

// Owns a new reference until it is released.
PyObject* none() { Py_RETURN_NONE; }

// (key, tensor or None, op or None, attrs, keys, inputs, types, mask)
PyObject* describe(const Call& call) {
  auto count = static_cast<Py_ssize_t>(call.inputs.size());
  Owned keys(PyTuple_New(count)), inputs(PyTuple_New(count)), types(PyTuple_New(static_cast<Py_ssize_t>(call.types.size())));
  if (!keys || !inputs || !types) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Leaf& leaf = call.inputs[static_cast<size_t>(i)];
    Type* type = static_cast<size_t>(i) < call.types.size() ? call.types[static_cast<size_t>(i)] : nullptr;
    bool scalar = !leaf.value && type && type->weak && type->shape.empty() && !call.keys[static_cast<size_t>(i)];
    PyObject* input = leaf.value ? wrap(leaf.value) : scalar ? scalar_object(type, leaf.scalar) : none();
    PyObject* key = PyLong_FromUnsignedLongLong(call.keys[static_cast<size_t>(i)]);
    PyTuple_SET_ITEM(inputs.object, i, input);
    PyTuple_SET_ITEM(keys.object, i, key);
    if (!input || !key) return nullptr;
  }
  for (size_t i = 0; i < call.types.size(); ++i) {
    PyObject* type = python_type(call.types[i]);
    if (!type) return nullptr;
    Py_INCREF(type);
    PyTuple_SET_ITEM(types.object, static_cast<Py_ssize_t>(i), type);
  }
  Owned result(call.result ? wrap(call.result) : none());
  if (!result) return nullptr;
  return Py_BuildValue("KOOOOOOK", static_cast<unsigned long long>(key_of(call.identity)), result.object,
                       call.operation ? call.operation->python : Py_None, call.attributes ? call.attributes->tuple : Py_None, keys.object,
                       inputs.object, types.object, static_cast<unsigned long long>(call.mask));
}

bool read_values(PyObject* tensors, std::vector<ValueRef>& out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tensors, i);
    if (!is_tensor(item)) {
      PyErr_Format(PyExc_TypeError, "expected a tensor, not %s", Py_TYPE(item)->tp_name);
      return false;
    }
    out.push_back(held_value(reinterpret_cast<PyTensor*>(item)));
    if (!out.back()) return false;
  }
  return true;
}

// calls_above(tensors, recorded) -> list of calls in the order they were made
PyObject* calls_above(PyObject*, PyObject* arguments) {
  PyObject* tensors;
  int recorded;
  if (!PyArg_ParseTuple(arguments, "O!p", &PyTuple_Type, &tensors, &recorded)) return nullptr;
  std::vector<ValueRef> values;
  if (!read_values(tensors, values) || !compute_elsewhere(Recorder::current(), values)) return nullptr;
  CallTraversal traversal(recorded);
  for (const ValueRef& value : values) traversal.start(value);
  if (!traversal.run()) return nullptr;
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(traversal.calls.size()));
  for (size_t i = 0; list && i < traversal.calls.size(); ++i) {
    PyObject* call = describe(traversal.calls[i]);
    if (!call) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), call);
  }
  return list;
}

// depends_outside(tensors, targets) -> whether gradients of the tensors reach leaves or tracked values beside targets
PyObject* depends_outside(PyObject*, PyObject* arguments) {
  PyObject *tensors, *targets;
  if (!PyArg_ParseTuple(arguments, "O!O!", &PyTuple_Type, &tensors, &PyTuple_Type, &targets)) return nullptr;
  std::vector<ValueRef> values, stops;
  if (!read_values(tensors, values) || !read_values(targets, stops)) return nullptr;
  std::vector<ValueRef> all = values;
  all.insert(all.end(), stops.begin(), stops.end());
  if (!compute_elsewhere(Recorder::current(), all)) return nullptr;
  CallTraversal traversal(true);
  std::unordered_set<uint64_t> keys;
  for (const ValueRef& stop : stops) keys.insert(key_of(identity_of(stop.get())));
  for (const ValueRef& value : values) traversal.start(value);
  if (!traversal.run()) return nullptr;
  return PyBool_FromLong(traversal.starts_outside(keys));
}

// call_key(tensor) -> the key under which calls_above names this tensor's value
PyObject* call_key(PyObject*, PyObject* object) {
  if (!is_tensor(object)) return PyErr_Format(PyExc_TypeError, "expected a tensor, not %s", Py_TYPE(object)->tp_name);
  const ValueRef value = held_value(reinterpret_cast<PyTensor*>(object));
  if (!value || !compute_elsewhere(Recorder::current(), std::vector{value})) return nullptr;
  return PyLong_FromUnsignedLongLong(key_of(identity_of(value.get())));
}

// tracked(tensor, declared) -> the same value as the input of a new gradient
PyObject* tracked(PyObject*, PyObject* arguments) {
  PyObject* object;
  int declare;
  if (!PyArg_ParseTuple(arguments, "O!p", tensor_type, &object, &declare)) return nullptr;
  const uint32_t location = capture_location();
  auto* tensor = reinterpret_cast<PyTensor*>(object);
  Operand operand;
  operand.value = current_value(tensor);
  if (!operand.value) return nullptr;
  operand.detached = tensor->detached;
  Operation* copy = operation_of(hooks.copy);
  if (!copy) return nullptr;
  if (declare || is_symbolic(operand.value)) return wrap(declare_call(copy, no_attributes(), &operand, 1, &object, true));
  Recorder& recorder = Recorder::current();
  ValueRef cut;
  if (operand.detached && operand.value->requires_grad) {
    // The gradient must not flow to the value that the handle was detached from.
    cut = recorder.record(copy, no_attributes(), &operand, 1, &object, location);
    if (!cut) return nullptr;
    operand.value = cut.get();
  }
  ValueRef made = recorder.record_tracked(copy, &operand, &object, location);
  if (made) slot_of(made.get());
  return wrap(std::move(made));
}

PyMethodDef functions[] = {
    {"calls_above", guarded<calls_above>, METH_VARARGS, "calls_above(tensors, recorded): the calls that made them, in order."},
    {"depends_outside", guarded<depends_outside>, METH_VARARGS, "depends_outside(tensors, targets): whether gradients reach more than targets."},
    {"call_key", guarded<call_key>, METH_O, "call_key(tensor): the name of its value in calls_above."},
    {"tracked", guarded<tracked>, METH_VARARGS, "tracked(tensor, declared): a copy that requires a gradient, whatever the tensor does."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_call_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace twofold
