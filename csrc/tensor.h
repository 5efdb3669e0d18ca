// The tensor handle: a mutable Python object on an immutable value.
#pragma once

#include <Python.h>

#include "recorder.h"

namespace twofold {

struct PyTensor;

// What makes a handle a view: in-place writes go through to the parent, reads follow the root's version.
struct View {
  PyTensor* parent;
  PyTensor* root;
  Operation* operation;    // null: the same value under another handle (detach)
  Attributes* attributes;
  PyObject* inputs;        // further inputs of the operation, a tuple
  uint32_t seen;           // version of the root when the value was read
  uint32_t epoch, parent_epoch;  // of the root and of the parent when the view was made
};

struct PyTensor {
  PyObject_HEAD
  Value* value;            // owned
  View* view;              // owned; null for a handle with storage of its own
  PyObject* weak_references;
  uint32_t version;
  uint32_t epoch;          // how often the handle has gone over to other storage (`tensor.data = other`)
  uint32_t views;          // how often living views made in this epoch name the handle as root or parent
  PyTensor* former;        // owned; the storage left last that a view still shows, in a handle of an earlier epoch
  bool detached;           // no gradient flows through this handle
};

extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type);
}

// The value now, re-read through the view if its storage has changed; borrowed; null with an error set.
Value* current_value(PyTensor* tensor);
PyObject* wrap(ValueRef value, PyTypeObject* type = nullptr);
// A view of the parent, in its root's epoch; takes the reference to inputs.
View* new_view(PyTensor* parent, Operation* op, Attributes* attributes, PyObject* inputs);
// What is stored next in the handle is nothing to the views of what it holds now.
bool leave_storage(PyTensor* tensor);
// 1: filled; 0: not an operand; -1: error set. Objects made on the way are kept alive by *held.
int to_operand(PyObject* object, Operand* operand, PyObject** held);
// Records op on Python operands (tensors and scalars).
PyObject* call_operation(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count);
// In-place: gives tensor the value, cast to its dtype.
bool assign(PyTensor* tensor, ValueRef value);
GradientSlot* slot_of(Value* value);
bool observe(PyTensor* tensor, const char* what);  // realises; false with an error set

void tensor_dealloc(PyObject* self);
ValueRef bind_operands(Operation* op, Attributes* attributes, Operand* operands, size_t count, PyObject* const* arguments);
int add_tensor_type(PyObject* module);
extern PyGetSetDef tensor_attributes[];
extern PyMethodDef tensor_methods[];
int add_operation_type(PyObject* module);
// Operator slots by special-method name, such as "__add__".
bool set_operator(const char* name, Operation* op);

// Arrays.
int import_numpy();
PyObject* array_of(PyTensor* tensor, bool copy);
ValueRef value_from_array(PyObject* array, bool share_memory, int dtype_code);
PyObject* scalar_item(Value* value, size_t offset);

// Define-then-run.
ValueRef declare_placeholder(Type* type);
ValueRef declare_call(Operation* op, Attributes* attributes, Operand* inputs, size_t count, PyObject* const* arguments,
                      bool grad_enabled);
bool is_symbolic(const Value* value);
int add_function_type(PyObject* module);
PyObject* gradients_of(PyObject* self, PyObject* arguments);
int add_call_functions(PyObject* module);
// A Python scalar as it was given: 2, 2.0 or True.
PyObject* scalar_object(const Type* type, uint64_t bits);

}  // namespace twofold
