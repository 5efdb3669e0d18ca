// The calls behind `tensor.grad_fn`, which are read from the graph on demand.
#include <Python.h>

#include <vector>

#include "guard.h"
#include "tensor.h"

namespace twofold {
namespace {

// The call that made a value, if it is still known.
struct Maker {
  Operation* operation = nullptr;
  AttributesRef attributes;
  std::vector<Type*> types;
  uint64_t mask = 0;
  std::vector<Leaf> inputs;  // those to which gradients flow; empty once the graph was freed
};

void take_op_instance(const OpInstance* instance, Maker& maker) {
  maker.operation = instance->operation;
  maker.attributes = instance->attributes;
  maker.types = instance->inputs;
}

void entry_inputs(const Value* value, Maker& maker) {
  Recorder& recorder = Recorder::current();
  const Entry entry = value->pending ? recorder.entry(static_cast<size_t>(value->index))
                                     : value->saved->trace->trace.entries[static_cast<size_t>(value->index)];
  const Ref* refs = value->pending ? recorder.inputs(entry) : value->saved->trace->trace.inputs(entry);
  const std::vector<Ref> given(refs, refs + entry.count);
  for (uint32_t i = 0; i < entry.count; ++i) {
    Leaf leaf;
    if (entry.flows_to(i)) {
      if (given[i] < 0) leaf = (value->pending ? recorder.leaves() : value->saved->leaves)[static_cast<size_t>(~given[i])];
      else leaf.value = value->pending ? recorder.value_of_entry(given[i], true) : kept_value(value->saved, static_cast<size_t>(given[i]));
    }
    maker.inputs.push_back(std::move(leaf));
  }
}

// 1: found; 0: the value is a leaf, or its call is unknown; -1 with a Python error set.
int find_maker(Value* value, bool inputs, Maker& maker) {
  if (const Declared* declared = value->declared.get()) {
    if (!declared->operation) return 0;
    maker.operation = declared->operation;
    maker.attributes = declared->attributes;
    maker.types = declared->input_types;
    for (size_t i = 0; inputs && i < declared->inputs.size(); ++i) {
      maker.inputs.push_back((declared->gradient_mask & Entry::mask_bit(i)) ? declared->inputs[i] : Leaf());
    }
    return 1;
  }
  // Traces of other threads are not read.
  if (Recorder::current().is_elsewhere(value) && !realise(value)) return -1;
  if (value->pending) take_op_instance(Recorder::current().entry(static_cast<size_t>(value->index)).instance, maker);
  else if (value->saved) take_op_instance(value->saved->trace->trace.entries[static_cast<size_t>(value->index)].instance, maker);
  else if (value->freed && value->made_by) take_op_instance(value->made_by, maker);
  else return 0;
  if (inputs && (value->pending || value->saved)) entry_inputs(value, maker);
  return 1;
}

// The user's tensor of this leaf, or another handle on it.
PyObject* leaf_tensor(const ValueRef& value) {
  if (!value->slot || !value->slot->handle) return wrap(value);
  PyObject* handle = PyObject_CallNoArgs(value->slot->handle);
  if (!handle || (handle != Py_None && reinterpret_cast<PyTensor*>(handle)->value->slot == value->slot)) return handle;
  Py_DECREF(handle);
  return wrap(value);
}

// Held, as its handle may get another one meanwhile; null with a Python error set.
ValueRef value_with_gradient(PyObject* object) {
  if (!is_tensor(object)) {
    PyErr_Format(PyExc_TypeError, "expected a tensor, not %s", Py_TYPE(object)->tp_name);
    return ValueRef();
  }
  return held_value(reinterpret_cast<PyTensor*>(object));
}

// made_by(tensor) -> (handle on the same value, op, attributes, input types, number of the call), or None.
PyObject* made_by(PyObject*, PyObject* object) {
  const ValueRef value = value_with_gradient(object);
  if (!value) return nullptr;
  Maker maker;
  int found = !flows(reinterpret_cast<PyTensor*>(object)) || value->is_leaf ? 0 : find_maker(value.get(), false, maker);
  if (found < 0) return nullptr;
  if (!found) Py_RETURN_NONE;
  const auto number = static_cast<int>(value->index);
  PyObject* types = types_tuple(maker.types.data(), maker.types.size());
  PyObject* handle = types ? wrap(value) : nullptr;
  if (!handle) {
    Py_XDECREF(types);
    return nullptr;
  }
  return Py_BuildValue("NOONi", handle, maker.operation->python, maker.attributes->tuple, types, number);
}

// made_from(tensor) -> its operands, None for those without a gradient; () once the graph was freed.
PyObject* made_from(PyObject*, PyObject* object) {
  const ValueRef value = value_with_gradient(object);
  if (!value) return nullptr;
  Maker maker;
  if (find_maker(value.get(), true, maker) < 0) return nullptr;
  PyObject* made = PyTuple_New(static_cast<Py_ssize_t>(maker.inputs.size()));
  for (size_t i = 0; made && i < maker.inputs.size(); ++i) {
    const ValueRef& input = maker.inputs[i].value;
    bool tracked = input && input->requires_grad;
    PyObject* tensor = !tracked ? Py_NewRef(Py_None) : input->is_leaf && !input->declared ? leaf_tensor(input) : wrap(input);
    if (!tensor) Py_CLEAR(made);
    else PyTuple_SET_ITEM(made, static_cast<Py_ssize_t>(i), tensor);
  }
  return made;
}

PyMethodDef functions[] = {
    {"made_by", guarded<made_by>, METH_O, "made_by(tensor): the call that made its value, or None."},
    {"made_from", guarded<made_from>, METH_O, "made_from(tensor): the inputs of that call, None where no gradient flows."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_grad_fn_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace twofold
