#include <cstring>

#include "gradient.h"
#include "location.h"
#include "tensor.h"

namespace twofold {
namespace {

PyTensor* as_tensor(PyObject* self) { return reinterpret_cast<PyTensor*>(self); }

PyObject* type_attribute(PyObject* self, const char* name) {
  PyObject* type = python_type(as_tensor(self)->value->type);
  return type ? PyObject_GetAttrString(type, name) : nullptr;
}

PyObject* get_shape(PyObject* self, void*) { return type_attribute(self, "size_object"); }
PyObject* get_dtype(PyObject* self, void*) { return type_attribute(self, "dtype"); }
PyObject* get_type(PyObject* self, void*) {
  PyObject* type = python_type(as_tensor(self)->value->type);
  Py_XINCREF(type);
  return type;
}
PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromSize_t(as_tensor(self)->value->type->shape.size());
}

PyObject* get_grad(PyObject* self, void*) {
  GradientSlot* slot = as_tensor(self)->value->slot;
  PyObject* gradient = slot && slot->gradient ? slot->gradient : Py_None;
  Py_INCREF(gradient);
  return gradient;
}

int set_grad(PyObject* self, PyObject* gradient, void*) {
  Value* value = as_tensor(self)->value;
  if (gradient && gradient != Py_None) {
    if (!is_tensor(gradient)) {
      PyErr_SetString(PyExc_TypeError, "grad: give a tensor or None");
      return -1;
    }
    Type* type = as_tensor(gradient)->value->type;
    if (type != value->type) {
      PyErr_Format(PyExc_RuntimeError, "grad: a gradient %s does not fit the tensor %s", type->text().c_str(),
                   value->type->text().c_str());
      return -1;
    }
    Py_INCREF(gradient);
  } else {
    gradient = nullptr;
    if (!value->slot) return 0;
  }
  GradientSlot* slot = slot_of(value);
  PyObject* old = std::exchange(slot->gradient, gradient);
  Py_XDECREF(old);
  return 0;
}

bool flows(const PyTensor* tensor) { return tensor->value->requires_grad && !tensor->detached; }

PyObject* get_requires_grad(PyObject* self, void*) { return PyBool_FromLong(flows(as_tensor(self))); }

int set_requires_grad(PyObject* self, PyObject* flag, void*) {
  PyTensor* tensor = as_tensor(self);
  Value* value = current_value(tensor);
  if (!value) return -1;
  int wanted = flag ? PyObject_IsTrue(flag) : 0;
  if (wanted < 0) return -1;
  if (wanted && !is_differentiable(value->type->dtype)) {
    PyErr_Format(PyExc_RuntimeError, "requires_grad: only floating and complex tensors can require gradients, this is %s. Cast it first.",
                 value->type->text().c_str());
    return -1;
  }
  if (!wanted && value->requires_grad && !value->is_leaf && !tensor->detached) {
    PyErr_SetString(PyExc_RuntimeError, "requires_grad: only a leaf can stop requiring gradients. Use detach().");
    return -1;
  }
  if (wanted && flows(tensor)) return 0;
  if (tensor->detached || (wanted && (value->pending || value->put_off))) {
    // The handle becomes a leaf of its own; the value it shared keeps its flags.
    if (!realise(value)) return -1;
    ValueRef own(new_value(value->type));
    own->buffer = value->buffer;
    own->location = value->location;
    release(std::exchange(tensor->value, own.take()));
    tensor->detached = false;
    value = tensor->value;
  }
  value->requires_grad = wanted;
  value->is_leaf = true;
  if (wanted) slot_of(value);
  return 0;
}

PyObject* get_is_leaf(PyObject* self, void*) {
  return PyBool_FromLong(!flows(as_tensor(self)) || as_tensor(self)->value->is_leaf);
}
PyObject* get_version(PyObject* self, void*) {
  PyTensor* tensor = as_tensor(self);
  return PyLong_FromUnsignedLong(tensor->view ? tensor->view->root->version : tensor->version);
}
PyObject* get_location(PyObject* self, void*) { return location_tuple(as_tensor(self)->value->location); }
PyObject* get_where(PyObject* self, void*) {
  return PyUnicode_FromString(location_text(as_tensor(self)->value->location).c_str());
}
PyObject* get_symbolic(PyObject* self, void*) { return PyBool_FromLong(is_symbolic(as_tensor(self)->value)); }
PyObject* get_base(PyObject* self, void*) {
  View* view = as_tensor(self)->view;
  PyObject* base = view ? reinterpret_cast<PyObject*>(view->root) : Py_None;
  Py_INCREF(base);
  return base;
}

PyObject* detach(PyObject* self, PyObject*) {
  PyTensor* tensor = as_tensor(self);
  Value* value = current_value(tensor);
  PyObject* made = value ? wrap(share(value)) : nullptr;
  if (!made) return nullptr;
  PyTensor* result = as_tensor(made);
  result->detached = true;
  result->view = new_view(tensor, nullptr, nullptr, PyTuple_New(0));
  return made;
}

PyObject* item(PyObject* self, PyObject*) {
  PyTensor* tensor = as_tensor(self);
  if (!observe(tensor, "item()")) return nullptr;
  if (tensor->value->type->size != 1) {
    return PyErr_Format(PyExc_RuntimeError, "item: only a tensor of one element becomes a number, this is %s. Index it first.",
                        tensor->value->type->text().c_str());
  }
  return scalar_item(tensor->value, 0);
}

PyObject* numpy(PyObject* self, PyObject*) {
  PyTensor* tensor = as_tensor(self);
  if (flows(tensor)) {
    PyErr_SetString(PyExc_RuntimeError, "numpy: the tensor requires grad. Use tensor.detach().numpy().");
    return nullptr;
  }
  return observe(tensor, "numpy()") ? array_of(tensor, false) : nullptr;
}

PyObject* realise_method(PyObject* self, PyObject*) {
  if (!observe(as_tensor(self), "realise()")) return nullptr;
  Py_INCREF(self);
  return self;
}

PyObject* data_ptr(PyObject* self, PyObject*) {
  if (!observe(as_tensor(self), "data_ptr()")) return nullptr;
  return PyLong_FromVoidPtr(as_tensor(self)->value->buffer->data);
}

PyObject* assign_method(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) return PyErr_Format(PyExc_TypeError, "assign: give a tensor, not %s", Py_TYPE(other)->tp_name);
  Value* value = current_value(as_tensor(other));
  if (!value) return nullptr;
  ValueRef given = share(value);
  if (!value->pending || value->references > 2 || value->requires_grad) {
    // Another handle shows this value too: the cell gets a value of its own.
    static Operation* const copy = operation_of(hooks.copy);
    PyObject* made = copy ? call_operation(copy, no_attributes(), &other, 1) : nullptr;
    if (!made) return nullptr;
    given = share(as_tensor(made)->value);
    Py_DECREF(made);
  }
  if (!assign(as_tensor(self), std::move(given))) return nullptr;
  Py_INCREF(self);
  return self;
}

// `tensor.data = other`: the handle takes the value, whatever its type, and stays the leaf it was.
PyObject* replace_value(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) return PyErr_Format(PyExc_TypeError, "data: give a tensor, not %s", Py_TYPE(other)->tp_name);
  PyTensor* tensor = as_tensor(self);
  Value* value = current_value(as_tensor(other));
  if (!value || !realise(value)) return nullptr;
  Value* old = tensor->value;
  ValueRef own(new_value(value->type));
  own->buffer = value->buffer;
  own->location = value->location;
  own->requires_grad = old->requires_grad && old->is_leaf;
  own->slot = own->requires_grad ? old->slot : nullptr;
  if (own->slot) ++own->slot->references;
  tensor->value = own.take();
  release(old);
  ++tensor->version;
  Py_RETURN_NONE;
}

PyObject* leave_storage_method(PyObject* self, PyObject*) {
  if (!current_value(as_tensor(self)) || !leave_storage(as_tensor(self))) return nullptr;
  Py_RETURN_NONE;
}

// The handle becomes the view `other` that was made of it; `other` holds from now on what the handle was.
PyObject* become(PyObject* self, PyObject* other) {
  PyTensor* tensor = as_tensor(self);
  Py_INCREF(self);
  if (self == other) return self;
  PyTensor* made = is_tensor(other) ? as_tensor(other) : nullptr;
  if (!made || !made->view || made->view->parent != tensor) {
    Py_DECREF(self);
    return PyErr_Format(PyExc_TypeError, "in-place: the operation gave no view of the tensor");
  }
  if (tensor->value->is_leaf && tensor->value->requires_grad) {
    Py_DECREF(self);
    return PyErr_Format(PyExc_RuntimeError,
                        "in-place: the shape of a leaf that requires grad is changed in place: %s. Use the form that returns a new tensor.",
                        tensor->value->type->text().c_str());
  }
  std::swap(tensor->value, made->value);
  std::swap(tensor->view, made->view);
  made->version = tensor->version;
  made->detached = tensor->detached;
  // All views that name the handle, the new one too, find in `made` what it held.
  made->views = std::exchange(tensor->views, 0);
  made->epoch = tensor->epoch++;
  made->former = std::exchange(tensor->former, made);
  Py_INCREF(other);
  // At once, since a handle that is its own parent would never die.
  if (!current_value(tensor)) Py_CLEAR(self);
  return self;
}

bool gather(GradientSlot* slot, ValueRef value) {
  if (slot->intermediate && !slot->retains) return true;
  PyObject* gradient = wrap(std::move(value));
  if (!gradient || !(slot->intermediate || run_hooks(slot, &gradient))) {
    Py_XDECREF(gradient);
    return false;
  }
  if (!slot->gradient) {
    slot->gradient = gradient;
    return true;
  }
  static Operation* const accumulate = operation_of(hooks.accumulate);
  PyObject* both[2] = {slot->gradient, gradient};
  PyObject* sum = call_operation(accumulate, no_attributes(), both, 2);
  Py_DECREF(gradient);
  if (!sum) return false;
  Recorder& recorder = Recorder::current();
  bool before = std::exchange(recorder.grad_enabled, false);
  bool done = assign(as_tensor(slot->gradient), share(as_tensor(sum)->value));
  recorder.grad_enabled = before;
  Py_DECREF(sum);
  return done;
}

bool check_root(PyTensor* tensor, PyObject* seed) {
  if (!flows(tensor)) {
    PyErr_SetObject(PyExc_RuntimeError, PyObject_CallFunctionObjArgs(hooks.no_gradient, tensor, nullptr));
    return false;
  }
  Type* type = tensor->value->type;
  if (seed == Py_None && type->size != 1) {
    PyErr_Format(PyExc_RuntimeError,
                 "backward: the gradient of a tensor with %lld elements needs a direction: %s (%s), at %s. "
                 "Reduce it with sum() or mean(), or pass gradient= of shape %s.",
                 static_cast<long long>(type->size), type->text().c_str(), location_text(tensor->value->location).c_str(),
                 location_text(capture_location()).c_str(), type->text().c_str());
    return false;
  }
  if (seed != Py_None && (!is_tensor(seed) || as_tensor(seed)->value->type->shape != type->shape)) {
    PyErr_Format(PyExc_RuntimeError, "backward: gradient= must be a tensor of the shape of %s", type->text().c_str());
    return false;
  }
  return true;
}

// backward(gradient, retain_graph, create_graph)
PyObject* backward(PyObject* self, PyObject* arguments) {
  PyObject* seed;
  int retain, create;
  if (!PyArg_ParseTuple(arguments, "Opp", &seed, &retain, &create)) return nullptr;
  PyTensor* tensor = as_tensor(self);
  Value* root = current_value(tensor);
  if (!root || !check_root(tensor, seed)) return nullptr;
  Recorder& recorder = Recorder::current();
  if (root->pending && root->owner != &recorder && !realise(root)) return nullptr;
  BackwardRequest request{root, seed == Py_None ? nullptr : current_value(as_tensor(seed)), retain || create, create != 0, {}};
  std::vector<FoundGradient> found;
  ValueRef kept = share(root);
  if (!differentiate(recorder, request, &found)) return nullptr;
  bool before = std::exchange(recorder.grad_enabled, create != 0);
  bool done = true;
  for (auto& item : found) done = done && gather(item.slot, std::move(item.gradient));
  recorder.grad_enabled = before;
  if (!done) return nullptr;
  if (recorder.runs_at_once() && !recorder.flush()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* slot_object(PyObject* self, PyObject* flag) {
  Value* value = current_value(as_tensor(self));
  if (!value) return nullptr;
  GradientSlot* slot = slot_of(value);
  if (value->requires_grad && !value->is_leaf) {
    slot->intermediate = true;
    slot->retains = slot->retains || flag == Py_True;
    Recorder::watch(value);
    // A predicted backward pass knows nothing of the slot.
    Recorder::current().forget_prediction();
  }
  if (!slot->hooks) slot->hooks = PyList_New(0);
  Py_XINCREF(slot->hooks);
  return slot->hooks;
}

}  // namespace

// gradients_of(outputs, seeds, targets, retain, create) -> list of tensors or None; a seed may be None
PyObject* gradients_of(PyObject*, PyObject* arguments) {
  PyObject *outputs, *seeds, *targets;
  int retain, create;
  if (!PyArg_ParseTuple(arguments, "O!O!O!pp", &PyTuple_Type, &outputs, &PyTuple_Type, &seeds, &PyTuple_Type, &targets, &retain, &create)) {
    return nullptr;
  }
  BackwardRequest request{nullptr, nullptr, retain || create, create != 0, {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
    PyObject *output = PyTuple_GET_ITEM(outputs, i), *seed = PyTuple_GET_ITEM(seeds, i);
    Value* root = current_value(as_tensor(output));
    if (!root || !check_root(as_tensor(output), seed)) return nullptr;
    Value* given = seed == Py_None ? nullptr : current_value(as_tensor(seed));
    if (i) request.more.emplace_back(root, given);
    else request.root = root, request.seed = given;
  }
  Recorder& recorder = Recorder::current();
  std::vector<GradientSlot*> slots;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(targets); ++i) {
    Value* value = current_value(as_tensor(PyTuple_GET_ITEM(targets, i)));
    if (!value) return nullptr;
    request.targets.push_back(value);
    slots.push_back(slot_of(value));
  }
  std::vector<FoundGradient> found;
  if (!differentiate(recorder, request, &found)) return nullptr;
  PyObject* result = PyList_New(static_cast<Py_ssize_t>(slots.size()));
  for (size_t i = 0; result && i < slots.size(); ++i) {
    PyObject* gradient = nullptr;
    for (auto& item : found) {
      if (item.slot == slots[i]) gradient = wrap(item.gradient);
    }
    if (gradient && !slots[i]->intermediate && !run_hooks(slots[i], &gradient)) {
      Py_DECREF(gradient);
      Py_DECREF(result);
      return nullptr;
    }
    if (!gradient) {
      Py_INCREF(Py_None);
      gradient = Py_None;
    }
    PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), gradient);
  }
  return result;
}

PyGetSetDef tensor_attributes[] = {
    {"shape", get_shape, nullptr, "Sizes of the axes.", nullptr},
    {"dtype", get_dtype, nullptr, "Element type.", nullptr},
    {"type_", get_type, nullptr, "Dtype and shape together.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"grad", get_grad, set_grad, "The gradient gathered so far, or None.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients flow to this tensor.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether this tensor was made by the user.", nullptr},
    {"_version", get_version, nullptr, "Counts in-place changes.", nullptr},
    {"_base", get_base, nullptr, "The tensor whose storage a view shows, or None.", nullptr},
    {"_location", get_location, nullptr, "(file, line, function) where this value was declared.", nullptr},
    {"_where", get_where, nullptr, "file:line where this value was declared.", nullptr},
    {"_is_symbolic", get_symbolic, nullptr, "Whether a placeholder stands above this value.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef tensor_methods[] = {
    {"detach", detach, METH_NOARGS, "The same value, through which no gradient flows."},
    {"item", item, METH_NOARGS, "The one element as a Python number."},
    {"_numpy", numpy, METH_NOARGS, "An array that shares this tensor's memory."},
    {"_realise", realise_method, METH_NOARGS, "Compute the value now."},
    {"data_ptr", data_ptr, METH_NOARGS, "Address of the first element."},
    {"_assign", assign_method, METH_O, "In-place: take the value of another tensor."},
    {"_become", become, METH_O, "In-place: become a view that was made of this tensor."},
    {"_replace_value", replace_value, METH_O, "Take another tensor's value, type and all."},
    {"_leave_storage", leave_storage_method, METH_NOARGS, "Views show on what this tensor held, whatever it is given now."},
    {"_backward", backward, METH_VARARGS, "backward(gradient, retain_graph, create_graph)"},
    {"_gradient_hooks", slot_object, METH_O, "List of hooks; True: keep the gradient of a value that is no leaf."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace twofold
