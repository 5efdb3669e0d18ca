#include <Python.h>

#include "size_type.h"

#include "guard.h"
#include "owned.h"

namespace twofold {
namespace {

PyTypeObject* size_base = nullptr;

// A tuple of the class of `like`; takes over the reference, which may be null with a Python error set.
PyObject* of_class_of(PyObject* like, PyObject* tuple) {
  const Owned owned(tuple);
  return tuple ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(like)), tuple) : nullptr;
}

bool is_size(PyObject* object) { return PyObject_TypeCheck(object, size_base); }

PyObject* subscript(PyObject* self, PyObject* key) {
  PyObject* found = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return PySlice_Check(key) ? of_class_of(self, found) : found;
}

PyObject* add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return of_class_of(is_size(a) ? a : b, PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}

PyObject* multiply(PyObject* a, PyObject* b) {
  PyObject* const number = is_size(a) ? b : a;
  if (!PyIndex_Check(number)) Py_RETURN_NOTIMPLEMENTED;
  const Py_ssize_t count = PyNumber_AsSsize_t(number, PyExc_OverflowError);
  if (count == -1 && PyErr_Occurred()) return nullptr;
  PyObject* const self = is_size(a) ? a : b;
  return of_class_of(self, PyTuple_Type.tp_as_sequence->sq_repeat(self, count));
}

PyType_Slot slots[] = {
    {Py_mp_subscript, slot<subscript>()},
    {Py_nb_add, slot<add>()},
    {Py_nb_multiply, slot<multiply>()},
    {0, nullptr},
};

}  // namespace

int add_size_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.SizeBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const Owned bases(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyTuple_Type)));
  PyObject* type = bases ? PyType_FromSpecWithBases(&spec, bases.object) : nullptr;
  if (!type) return -1;
  size_base = reinterpret_cast<PyTypeObject*>(type);
  Py_INCREF(type);
  return PyModule_AddObject(module, "SizeBase", type);
}

}  // namespace twofold
