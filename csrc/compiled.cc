// A callable that dispatches tensors of known types to the function declared for them, and all else to Python.
#include <Python.h>
#include <structmember.h>

#include "compiled.h"

#include <utility>
#include <vector>

#include "guard.h"
#include "tensor.h"

namespace twofold {
namespace {

struct Declaration {
  std::vector<Type*> types;
  int autocast;  // the dtype code of the region that it was declared in, or -1
  uint8_t default_float;
  PyObject* function;  // owned
};

struct PyCompiled {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  std::vector<Declaration>* declarations;
  PyObject* slow;
  PyObject* dictionary;
};

PyTypeObject* compiled_type = nullptr;
bool declarations_used = true;  // false: every call is Python's

// Whether a declared graph may replace a call: bound tensors, and no gradient to record.
bool plain(PyObject* argument, bool grad_enabled) {
  if (!is_tensor(argument)) return false;
  auto* tensor = reinterpret_cast<PyTensor*>(argument);
  return !is_symbolic(tensor->value) && !(grad_enabled && tensor->value->requires_grad && !tensor->detached);
}

int autocast_now() {
  const Recorder& recorder = Recorder::current();
  return recorder.autocast ? recorder.autocast_dtype : -1;
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* compiled = reinterpret_cast<PyCompiled*>(self);
  size_t count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  bool grad_enabled = Recorder::current().grad_enabled;
  const int autocast = autocast_now();
  const uint8_t default_now = default_float;
  bool fits = declarations_used && !names && count > 0;
  for (size_t i = 0; fits && i < count; ++i) fits = plain(arguments[i], grad_enabled);
  if (fits) {
    for (const auto& declaration : *compiled->declarations) {
      if (declaration.types.size() != count || declaration.autocast != autocast || declaration.default_float != default_now) continue;
      size_t i = 0;
      while (i < count && declaration.types[i] == reinterpret_cast<PyTensor*>(arguments[i])->value->type) ++i;
      if (i == count) return PyObject_Vectorcall(declaration.function, arguments, flags, nullptr);
    }
  }
  return PyObject_Vectorcall(compiled->slow, arguments, flags, names);
}

// declare(tensors, function): calls with tensors of these types go to function
PyObject* declare(PyObject* self, PyObject* arguments) {
  PyObject *tensors, *function;
  if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &tensors, &function)) return nullptr;
  Declaration made{{}, autocast_now(), default_float, function};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
    PyObject* tensor = PyTuple_GET_ITEM(tensors, i);
    if (!is_tensor(tensor)) return PyErr_Format(PyExc_TypeError, "declare takes tensors");
    made.types.push_back(reinterpret_cast<PyTensor*>(tensor)->value->type);
  }
  Py_INCREF(function);
  reinterpret_cast<PyCompiled*>(self)->declarations->push_back(std::move(made));
  Py_RETURN_NONE;
}

PyObject* bind_method(PyObject* self, PyObject* instance, PyObject*) {
  if (instance && instance != Py_None) return PyMethod_New(self, instance);
  Py_INCREF(self);
  return self;
}

// What it calls holds it: `slow` declares for it, and the functions declared know what they were made for. These let go of it in
// a cycle: what is called is never null.
int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* compiled = reinterpret_cast<PyCompiled*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(compiled->slow);
  Py_VISIT(compiled->dictionary);
  if (!compiled->declarations) return 0;  // it is being made
  for (const auto& declaration : *compiled->declarations) Py_VISIT(declaration.function);
  return 0;
}

void dealloc(PyObject* self) {
  auto* compiled = reinterpret_cast<PyCompiled*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  for (auto& declaration : *compiled->declarations) Py_DECREF(declaration.function);
  delete compiled->declarations;
  Py_XDECREF(compiled->slow);
  Py_XDECREF(compiled->dictionary);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyCompiled, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyCompiled, dictionary), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyMethodDef methods[] = {
    {"declare", guarded<declare>, METH_VARARGS, "declare(tensors, function): calls with tensors of these types go to function"},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, slot<dealloc>()},
    {Py_tp_traverse, slot<traverse>()},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, slot<bind_method>()},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, nullptr},
};

// compiled(slow) -> callable
PyObject* make_compiled(PyObject*, PyObject* slow) {
  auto* made = reinterpret_cast<PyCompiled*>(compiled_type->tp_alloc(compiled_type, 0));
  if (!made) return nullptr;
  made->vectorcall = guarded<call>;
  made->declarations = new std::vector<Declaration>();
  made->slow = slow;
  made->dictionary = PyDict_New();
  Py_INCREF(slow);
  return reinterpret_cast<PyObject*>(made);
}

// use_declarations(whether calls may go to declared functions) -> what was said before
PyObject* use_declarations(PyObject*, PyObject* used) {
  const int wanted = PyObject_IsTrue(used);
  if (wanted < 0) return nullptr;
  return PyBool_FromLong(std::exchange(declarations_used, wanted != 0));
}

PyObject* are_declarations_used(PyObject*, PyObject*) { return PyBool_FromLong(declarations_used); }

PyMethodDef functions[] = {
    {"declarations_used", guarded<are_declarations_used>, METH_NOARGS, "declarations_used(): what use_declarations said."},
    {"use_declarations", guarded<use_declarations>, METH_O, "use_declarations(used): whether compiled functions run what was declared; returns what was said before."},
    {"compiled", guarded<make_compiled>, METH_O, "compiled(slow): a callable that knows declared functions by input types."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_compiled_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.Compiled", sizeof(PyCompiled), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                      slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return -1;
  compiled_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace twofold
