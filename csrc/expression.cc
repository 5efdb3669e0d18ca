// The base class of expressions of `twofold.dynet`: a tensor, and the batch size beside its dimensions.
//
// A program makes one for each call, so no Python code runs for it, and the garbage collector does not visit it: a tensor
// refers to no expression, unless a program puts one into its attributes or hooks.
#include <Python.h>
#include <structmember.h>

#include <cstddef>

#include "expression.h"
#include "guard.h"

namespace twofold {
namespace {

struct PyExpression {
  PyObject_HEAD
  PyObject* tensor;
  PyObject* batch;
  PyObject* weak_references;
};

PyExpression* as_expression(PyObject* self) { return reinterpret_cast<PyExpression*>(self); }

int initialise(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static PyObject* const one = PyLong_FromLong(1);
  PyObject *tensor = nullptr, *batch = one;
  static const char* names[] = {"tensor", "batch", nullptr};
  if (!keywords && PyTuple_GET_SIZE(arguments) == 1) {
    tensor = PyTuple_GET_ITEM(arguments, 0);
  } else if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:Expression", const_cast<char**>(names), &tensor, &batch)) {
    return -1;
  }
  Py_XSETREF(as_expression(self)->tensor, Py_XNewRef(tensor));  // none: an empty expression, which a program fills later
  Py_XSETREF(as_expression(self)->batch, Py_NewRef(batch));
  return 0;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (as_expression(self)->weak_references) PyObject_ClearWeakRefs(self);
  Py_XDECREF(as_expression(self)->tensor);
  Py_XDECREF(as_expression(self)->batch);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"_tensor", T_OBJECT_EX, offsetof(PyExpression, tensor), 0, "The value, its dimensions in reverse, the batch first where it is not 1."},
    {"_batch", T_OBJECT_EX, offsetof(PyExpression, batch), 0, "The size of the batch."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyExpression, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_init, slot<initialise>()},
    {Py_tp_dealloc, slot<dealloc>()},
    {Py_tp_members, members},
    {0, nullptr},
};

}  // namespace

int add_expression_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.Expression", sizeof(PyExpression), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromSpec(&spec);
  return type ? PyModule_AddObject(module, "Expression", type) : -1;
}

}  // namespace twofold
