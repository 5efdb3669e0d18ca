#include "tensor.h"

#include <cstring>
#include <string>

#include "location.h"

namespace twofold {

PyTypeObject* tensor_type = nullptr;

namespace {

constexpr int kMostFree = 256;
PyTensor* free_list[kMostFree];
int free_count = 0;

constexpr size_t kMostOperands = 16;

// The handle that holds what the tensor held in that epoch: itself, or what it has left behind.
PyTensor* holder(PyTensor* tensor, uint32_t epoch) {
  while (tensor->epoch != epoch) tensor = tensor->former;
  return tensor;
}

void release_view(View* view) {
  --holder(view->root, view->epoch)->views;
  --holder(view->parent, view->parent_epoch)->views;
  Py_XDECREF(view->inputs);
  Py_DECREF(reinterpret_cast<PyObject*>(view->root));
  Py_DECREF(reinterpret_cast<PyObject*>(view->parent));
  delete view;
}

}  // namespace

void tensor_dealloc(PyObject* self) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  if (tensor->weak_references) PyObject_ClearWeakRefs(self);
  if (Value* value = std::exchange(tensor->value, nullptr)) release(value);
  Py_CLEAR(tensor->former);
  // A chain of views unwinds through the trashcan-free loop of their parents' own deallocation; chains are short.
  if (View* view = std::exchange(tensor->view, nullptr)) release_view(view);
  PyTypeObject* type = Py_TYPE(self);
  if (type == tensor_type && free_count < kMostFree) {
    free_list[free_count++] = tensor;
    return;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

View* new_view(PyTensor* parent, Operation* op, Attributes* attributes, PyObject* inputs) {
  PyTensor* root = parent->view ? parent->view->root : parent;
  Py_INCREF(reinterpret_cast<PyObject*>(parent));
  Py_INCREF(reinterpret_cast<PyObject*>(root));
  ++root->views;
  ++parent->views;
  return new View{parent, root, op, attributes, inputs, root->version, root->epoch, parent->epoch};
}

bool leave_storage(PyTensor* tensor) {
  for (PyTensor** link = &tensor->former; *link;) {
    PyTensor* left = *link;
    if (left->views) {
      link = &left->former;
    } else {
      *link = std::exchange(left->former, nullptr);
      Py_DECREF(reinterpret_cast<PyObject*>(left));
    }
  }
  if (tensor->views) {
    auto* left = reinterpret_cast<PyTensor*>(wrap(share(tensor->value)));
    if (!left) return false;
    left->version = tensor->version;
    left->epoch = tensor->epoch;
    left->views = std::exchange(tensor->views, 0);
    left->view = std::exchange(tensor->view, nullptr);
    left->detached = tensor->detached;
    left->former = tensor->former;
    tensor->former = left;
  } else if (View* view = std::exchange(tensor->view, nullptr)) {
    release_view(view);
  }
  ++tensor->epoch;
  ++tensor->version;
  return true;
}

namespace {

// Hangs the view on the handles that its root and its parent left their storage to, if they have left it.
void follow_storage(View* view) {
  PyTensor* root = holder(view->root, view->epoch);
  PyTensor* parent = holder(view->parent, view->parent_epoch);
  Py_INCREF(reinterpret_cast<PyObject*>(root));
  Py_INCREF(reinterpret_cast<PyObject*>(parent));
  Py_DECREF(reinterpret_cast<PyObject*>(std::exchange(view->root, root)));
  Py_DECREF(reinterpret_cast<PyObject*>(std::exchange(view->parent, parent)));
}

// Keeps what `record` needs about a view: operation, parent and further inputs.
void attach_view(PyTensor* result, PyTensor* parent, Operation* op, Attributes* attributes, PyObject* const* rest, size_t count) {
  PyObject* inputs = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; i < count && inputs; ++i) {
    Py_INCREF(rest[i]);
    PyTuple_SET_ITEM(inputs, static_cast<Py_ssize_t>(i), rest[i]);
  }
  result->view = new_view(parent, op, attributes, inputs);
}

// A Python complex number as a handle on a weak value: it takes sixteen bytes, which a scalar leaf has not.
PyObject* complex_scalar(PyObject* object) {
  static Type* const type = type_of(kComplex128, nullptr, 0, true);
  ValueRef value(new_value(type));
  const double parts[2] = {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
  try {
    value->buffer = BufferRef(new_buffer(sizeof parts));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  std::memcpy(value->buffer->data, parts, sizeof parts);
  value->location = capture_location();
  return wrap(std::move(value));
}

}  // namespace

ValueRef bind_operands(Operation* op, Attributes* attributes, Operand* operands, size_t count, PyObject* const* arguments) {
  Recorder& recorder = Recorder::current();
  for (size_t i = 0; i < count; ++i) {
    if (operands[i].value && is_symbolic(operands[i].value)) {
      return declare_call(op, attributes, operands, count, arguments, recorder.grad_enabled);
    }
  }
  return recorder.record(op, attributes, operands, count, arguments);
}

PyObject* wrap(ValueRef value, PyTypeObject* type) {
  if (!value) return nullptr;
  PyTensor* tensor;
  if (!type && free_count > 0) {
    tensor = free_list[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(tensor), tensor_type);
    Py_DECREF(tensor_type);  // a block from the free list still holds its reference to the type
  } else {
    tensor = reinterpret_cast<PyTensor*>((type ? type : tensor_type)->tp_alloc(type ? type : tensor_type, 0));
    if (!tensor) return nullptr;
  }
  tensor->value = value.take();
  tensor->view = nullptr;
  tensor->weak_references = nullptr;
  tensor->version = tensor->epoch = tensor->views = 0;
  tensor->former = nullptr;
  tensor->detached = false;
  return reinterpret_cast<PyObject*>(tensor);
}

Value* current_value(PyTensor* tensor) {
  View* view = tensor->view;
  if (!view) return tensor->value;
  if (view->epoch != view->root->epoch || view->parent_epoch != view->parent->epoch) follow_storage(view);
  if (view->seen == view->root->version) return tensor->value;
  Value* parent = current_value(view->parent);
  if (!parent) return nullptr;
  ValueRef fresh;
  if (!view->operation) {
    fresh = share(parent);
  } else {
    PyObject* arguments[kMostOperands];
    arguments[0] = reinterpret_cast<PyObject*>(view->parent);
    size_t count = static_cast<size_t>(PyTuple_GET_SIZE(view->inputs)) + 1;
    for (size_t i = 1; i < count; ++i) arguments[i] = PyTuple_GET_ITEM(view->inputs, static_cast<Py_ssize_t>(i - 1));
    PyObject* made = call_operation(view->operation, view->attributes, arguments, count);
    if (!made) return nullptr;
    fresh = share(reinterpret_cast<PyTensor*>(made)->value);
    Py_DECREF(made);
  }
  Value* old = std::exchange(tensor->value, fresh.take());
  release(old);
  view->seen = view->root->version;
  return tensor->value;
}

int to_operand(PyObject* object, Operand* operand, PyObject** held) {
  *held = nullptr;
  if (is_tensor(object)) {
    auto* tensor = reinterpret_cast<PyTensor*>(object);
    operand->value = current_value(tensor);
    operand->detached = tensor->detached;
    return operand->value ? 1 : -1;
  }
  operand->value = nullptr;
  operand->scalar = 0;
  if (PyBool_Check(object)) {
    static Type* const type = type_of(kBool, nullptr, 0, true);
    operand->scalar_type = type;
    operand->scalar = object == Py_True;
    return 1;
  }
  if (PyFloat_Check(object)) {
    static Type* const type = type_of(kFloat64, nullptr, 0, true);
    double number = PyFloat_AS_DOUBLE(object);
    operand->scalar_type = type;
    std::memcpy(&operand->scalar, &number, sizeof number);
    return 1;
  }
  if (PyLong_Check(object)) {
    static Type* const type = type_of(kInt64, nullptr, 0, true);
    operand->scalar_type = type;
    int64_t number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred()) return -1;
    std::memcpy(&operand->scalar, &number, sizeof number);
    return 1;
  }
  if (PyComplex_Check(object)) {
    *held = complex_scalar(object);
    if (!*held) return -1;
    operand->value = reinterpret_cast<PyTensor*>(*held)->value;
    operand->detached = true;
    return 1;
  }
  PyObject* converted = PyObject_CallFunctionObjArgs(hooks.as_operand, object, nullptr);
  if (!converted) return -1;
  if (converted == Py_NotImplemented || converted == object) {
    Py_DECREF(converted);
    return 0;
  }
  PyObject* inner = nullptr;
  int status = to_operand(converted, operand, &inner);
  *held = converted;
  return status;
}

PyObject* call_operation(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count) {
  Operand on_stack[kMostOperands];
  PyObject* held_on_stack[kMostOperands];
  std::vector<Operand> on_heap;
  std::vector<PyObject*> held_on_heap;
  Operand* operands = on_stack;
  PyObject** held = held_on_stack;
  if (count > kMostOperands) {
    on_heap.resize(count);
    held_on_heap.resize(count);
    operands = on_heap.data();
    held = held_on_heap.data();
  }
  size_t done = 0;
  int status = 1;
  for (; done < count && status == 1; ++done) status = to_operand(arguments[done], &operands[done], &held[done]);
  PyObject* result = nullptr;
  if (status == 1) {
    ValueRef value = bind_operands(op, attributes, operands, count, arguments);
    if (value) result = wrap(std::move(value));
    if (result && op->is_view && count > 0 && is_tensor(arguments[0]) && reinterpret_cast<PyTensor*>(result)->value->declared == nullptr) {
      attach_view(reinterpret_cast<PyTensor*>(result), reinterpret_cast<PyTensor*>(arguments[0]), op, attributes, arguments + 1, count - 1);
    }
  } else if (status == 0) {
    PyErr_Format(PyExc_TypeError, "%s: operand %zu is of type %s. Give a tensor or a number.", op->name.c_str(), done,
                 Py_TYPE(arguments[done - 1])->tp_name);
  }
  for (size_t i = 0; i < done; ++i) Py_XDECREF(held[i]);
  return result;
}

GradientSlot* slot_of(Value* value) {
  if (!value->slot) value->slot = new GradientSlot();
  return value->slot;
}

namespace {

// Copies a result into memory that is shared with somebody outside.
bool write_into(PyTensor* tensor, ValueRef value) {
  if (!realise(value.get())) return false;
  Buffer* target = tensor->value->buffer.get();
  if (target->read_only) {
    PyErr_SetString(PyExc_RuntimeError, "an in-place operation on a tensor that shares read-only memory. Clone it first.");
    return false;
  }
  std::memcpy(target->data, value->buffer->data, target->nbytes);
  BufferRef storage = tensor->value->buffer;
  Value* old = tensor->value;
  bool leaf_gradient = old->is_leaf && old->requires_grad;
  ValueRef fresh(new_value(value->type));
  fresh->buffer = storage;
  fresh->requires_grad = leaf_gradient || value->requires_grad;
  fresh->is_leaf = leaf_gradient || value->is_leaf;
  fresh->index = value->index;
  fresh->history = leaf_gradient ? nullptr : value->history;
  fresh->slot = leaf_gradient ? old->slot : nullptr;
  if (fresh->slot) ++fresh->slot->references;
  tensor->value = fresh.take();
  release(old);
  ++tensor->version;
  return true;
}

ValueRef cast_to(ValueRef value, Type* type) {
  if (value->type->dtype == type->dtype && !value->type->weak) return value;
  PyObject* source = wrap(std::move(value));
  PyObject* target = python_type(type);
  PyObject* made = source && target ? PyObject_CallFunctionObjArgs(hooks.cast, source, target, nullptr) : nullptr;
  Py_XDECREF(source);
  if (!made) return ValueRef();
  ValueRef result = share(reinterpret_cast<PyTensor*>(made)->value);
  Py_DECREF(made);
  return result;
}

// Whether the handle, or one that it is a view of, was detached.
bool is_detached_view(const PyTensor* tensor) {
  for (; tensor; tensor = tensor->view ? tensor->view->parent : nullptr) {
    if (tensor->detached) return true;
  }
  return false;
}

bool check_assignable(PyTensor* tensor, const Value* value) {
  Value* old = tensor->value;
  PyTensor* root = tensor->view ? tensor->view->root : tensor;
  if (Recorder::current().grad_enabled && root->value->requires_grad && root->value->is_leaf && !is_detached_view(tensor)) {
    std::string where = location_text(capture_location());
    PyErr_Format(PyExc_RuntimeError,
                 "in-place: a leaf that requires grad is changed in place: %s (%s), at %s. "
                 "Do it under no_grad(), or on a copy.",
                 old->type->text().c_str(), location_text(root->value->location).c_str(), where.c_str());
    return false;
  }
  if (value->type->shape != old->type->shape) {
    std::string where = location_text(capture_location());
    PyErr_Format(PyExc_RuntimeError,
                 "in-place: the result %s does not have the shape of the tensor %s (%s), at %s. "
                 "Write the operation out of place.",
                 value->type->text().c_str(), old->type->text().c_str(), location_text(old->location).c_str(), where.c_str());
    return false;
  }
  return true;
}

}  // namespace

bool assign(PyTensor* tensor, ValueRef value) {
  if (!current_value(tensor) || !check_assignable(tensor, value.get())) return false;
  uint8_t from = value->type->dtype, to = tensor->value->type->dtype;
  if ((is_differentiable(from) && !is_differentiable(to)) || (is_complex(from) && !is_complex(to))) {
    PyErr_Format(PyExc_RuntimeError, "in-place: a result of %s cannot be stored in %s. Convert the tensor first.",
                 value->type->text().c_str(), tensor->value->type->text().c_str());
    return false;
  }
  value = cast_to(std::move(value), tensor->value->type);
  if (!value) return false;
  if (View* view = tensor->view) {
    ValueRef written = value;
    if (view->operation) {
      PyObject* handle = wrap(value);
      PyObject* made = handle ? PyObject_CallFunctionObjArgs(hooks.write_view, view->operation->python, view->attributes->tuple,
                                                             view->inputs, reinterpret_cast<PyObject*>(view->parent), handle, nullptr)
                              : nullptr;
      Py_XDECREF(handle);
      if (!made) return false;
      written = share(reinterpret_cast<PyTensor*>(made)->value);
      Py_DECREF(made);
    }
    // Writing through a detached handle is how a program says that no gradient is meant.
    Recorder& recorder = Recorder::current();
    bool before = std::exchange(recorder.grad_enabled, recorder.grad_enabled && !is_detached_view(tensor));
    bool done = assign(view->parent, std::move(written));
    recorder.grad_enabled = before;
    if (!done) return false;
    Value* old = std::exchange(tensor->value, value.take());
    release(old);
    view->seen = view->root->version;
    return true;
  }
  if (tensor->value->buffer && !tensor->value->buffer->read_only && tensor->value->buffer->shared_outside()) return write_into(tensor, std::move(value));
  Value* old = tensor->value;
  if (old->is_leaf && old->requires_grad) {
    value->requires_grad = value->is_leaf = true;
    if (old->slot && !value->slot) ++(value->slot = old->slot)->references;
  }
  tensor->value = value.take();
  release(old);
  ++tensor->version;
  return true;
}

bool observe(PyTensor* tensor, const char* what) {
  Value* value = current_value(tensor);
  if (!value) return false;
  if (is_symbolic(value)) {
    PyObject* result = PyObject_CallFunction(hooks.symbolic_observed, "Os", reinterpret_cast<PyObject*>(tensor), what);
    Py_XDECREF(result);
    return false;
  }
  return realise(value);
}

}  // namespace twofold
