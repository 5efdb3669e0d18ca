#include <Python.h>
#include <structmember.h>

#include "gradient_mode.h"

#include <vector>

#include "guard.h"
#include "recorder.h"

namespace twofold {
namespace {

// In C++, since a signal's handler may raise between any two instructions of Python: each method here happens
// whole or not at all, and `with` lets no handler run between entering and the block.
struct PyGradientMode {
  PyObject_HEAD
  char mode;
  signed char outside;          // the outer mode, if the object switched it in its constructor; else -1
  std::vector<uint8_t>* before;
};

PyGradientMode* as_mode(PyObject* self) { return reinterpret_cast<PyGradientMode*>(self); }

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_mode(self)->outside = -1;
  as_mode(self)->before = new (std::nothrow) std::vector<uint8_t>();
  if (as_mode(self)->before) return self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}

int initialise(PyObject* self, PyObject* arguments, PyObject*) {
  int mode, at_once = 0;
  if (!PyArg_ParseTuple(arguments, "p|p", &mode, &at_once)) return -1;
  as_mode(self)->mode = static_cast<char>(mode);
  if (at_once) as_mode(self)->outside = static_cast<signed char>(std::exchange(Recorder::current().grad_enabled, mode != 0));
  return 0;
}

PyObject* enter(PyObject* self, PyObject*) {
  PyGradientMode* switched = as_mode(self);
  bool& now = Recorder::current().grad_enabled;
  switched->before->push_back(switched->outside >= 0 ? switched->outside != 0 : now);
  switched->outside = -1;
  now = switched->mode != 0;
  Py_RETURN_NONE;
}

PyObject* leave(PyObject* self, PyObject*) {
  PyGradientMode* switched = as_mode(self);
  if (switched->before->empty()) return PyErr_Format(PyExc_RuntimeError, "a gradient mode is left that was not entered");
  Recorder::current().grad_enabled = switched->before->back() != 0;
  switched->before->pop_back();
  Py_RETURN_NONE;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete as_mode(self)->before;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"enabled", T_BOOL, offsetof(PyGradientMode, mode), READONLY, "Whether gradients are recorded inside."},
    {nullptr, 0, 0, 0, nullptr},
};

PyMethodDef methods[] = {
    {"__enter__", guarded<enter>, METH_NOARGS, "Switch to the mode."},
    {"__exit__", guarded<leave>, METH_VARARGS, "Switch back to the mode before."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, slot<make>()},
    {Py_tp_init, slot<initialise>()},
    {Py_tp_dealloc, slot<dealloc>()},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, nullptr},
};

}  // namespace

int add_gradient_mode_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.GradientMode", sizeof(PyGradientMode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromSpec(&spec);
  return type ? PyModule_AddObject(module, "GradientMode", type) : -1;
}

}  // namespace twofold
