#include "autocast.h"

#include <algorithm>

#include "guard.h"
#include "tensor.h"

namespace twofold {
namespace {

// The dtype of a tensor that a region may cast; kDTypeCount of what stays as it is, float64 among it.
uint8_t castable(PyObject* argument) {
  if (!is_tensor(argument)) return kDTypeCount;
  const Type* type = reinterpret_cast<PyTensor*>(argument)->value->type;
  bool narrow = type->dtype == kFloat16 || type->dtype == kBFloat16 || type->dtype == kFloat32;
  return narrow && !type->weak ? type->dtype : static_cast<uint8_t>(kDTypeCount);
}

// kDTypeCount: nothing is cast.
uint8_t dtype_for(AutocastPolicy policy, uint8_t lower, PyObject* const* arguments, size_t count) {
  if (policy == AutocastPolicy::kOwn) return kDTypeCount;
  if (policy == AutocastPolicy::kFloat32) return kFloat32;
  if (policy == AutocastPolicy::kLower) return lower;
  auto fits = [lower](PyObject* argument) {
    uint8_t dtype = castable(argument);
    return dtype == kDTypeCount || dtype == lower;
  };
  bool all = std::all_of(arguments, arguments + count, [&fits](PyObject* argument) {
    if (!PyList_Check(argument) && !PyTuple_Check(argument)) return fits(argument);
    PyObject** items = PySequence_Fast_ITEMS(argument);
    return std::all_of(items, items + PySequence_Fast_GET_SIZE(argument), fits);
  });
  return all ? lower : static_cast<uint8_t>(kFloat32);
}

// A new reference; null with a Python error set.
PyObject* cast_to(PyObject* tensor, uint8_t dtype) {
  PyObject* type = python_type(type_of(dtype, nullptr, 0));
  return type ? PyObject_CallFunctionObjArgs(hooks.cast, tensor, type, nullptr) : nullptr;
}

PyObject* cast_argument(PyObject* argument, uint8_t dtype) {
  uint8_t given = dtype == kDTypeCount ? dtype : castable(argument);
  if (given != kDTypeCount && given != dtype) return cast_to(argument, dtype);
  if (dtype == kDTypeCount || (!PyList_Check(argument) && !PyTuple_Check(argument))) {
    Py_INCREF(argument);
    return argument;
  }
  PyObject* items = PyList_New(0);
  bool tensors = false;
  for (Py_ssize_t i = 0; items && i < PySequence_Fast_GET_SIZE(argument); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(argument, i);
    uint8_t each = castable(item);
    bool changes = each != kDTypeCount && each != dtype;
    PyObject* made = changes ? cast_to(item, dtype) : item;
    if (!made || PyList_Append(items, made) < 0) Py_CLEAR(items);
    if (changes) Py_XDECREF(made);
    tensors |= changes;
  }
  if (!items || tensors) return items;
  Py_DECREF(items);
  Py_INCREF(argument);
  return argument;
}

// In C++, as the gradient mode, so that methods are atomic for signal handlers.
struct PyAutocastMode {
  PyObject_HEAD
  signed char enabled;  // -1: entering changes nothing
  uint8_t dtype;
  std::vector<std::pair<bool, uint8_t>>* before;
};

PyAutocastMode* as_mode(PyObject* self) { return reinterpret_cast<PyAutocastMode*>(self); }

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_mode(self)->enabled = -1;
  as_mode(self)->before = new (std::nothrow) std::vector<std::pair<bool, uint8_t>>();
  if (as_mode(self)->before) return self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}

bool is_lower(int dtype) { return dtype == kFloat16 || dtype == kBFloat16; }

int initialise(PyObject* self, PyObject* arguments, PyObject*) {
  int enabled, dtype;
  if (!PyArg_ParseTuple(arguments, "ii", &enabled, &dtype)) return -1;
  if (enabled > 0 && !is_lower(dtype)) {
    PyErr_SetString(PyExc_ValueError, "autocast: float16 or bfloat16");
    return -1;
  }
  as_mode(self)->enabled = static_cast<signed char>(enabled < 0 ? -1 : enabled != 0);
  as_mode(self)->dtype = static_cast<uint8_t>(dtype);
  return 0;
}

PyObject* enter(PyObject* self, PyObject*) {
  PyAutocastMode* mode = as_mode(self);
  Recorder& recorder = Recorder::current();
  mode->before->emplace_back(recorder.autocast, recorder.autocast_dtype);
  if (mode->enabled >= 0) {
    recorder.autocast = mode->enabled != 0;
    recorder.autocast_dtype = mode->dtype;
  }
  Py_INCREF(self);
  return self;
}

PyObject* leave(PyObject* self, PyObject*) {
  PyAutocastMode* mode = as_mode(self);
  if (mode->before->empty()) return PyErr_Format(PyExc_RuntimeError, "an autocast region is left that was not entered");
  auto [enabled, dtype] = mode->before->back();
  mode->before->pop_back();
  if (mode->enabled >= 0) {
    Recorder::current().autocast = enabled;
    Recorder::current().autocast_dtype = dtype;
  }
  Py_RETURN_NONE;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete as_mode(self)->before;
  type->tp_free(self);
  Py_DECREF(type);
}

// autocast_state() -> (enabled, code of the lower dtype)
PyObject* autocast_state(PyObject*, PyObject*) {
  const Recorder& recorder = Recorder::current();
  return Py_BuildValue("Oi", recorder.autocast ? Py_True : Py_False, static_cast<int>(recorder.autocast_dtype));
}

// set_autocast_state(enabled, dtype code)
PyObject* set_autocast_state(PyObject*, PyObject* arguments) {
  int enabled, dtype;
  if (!PyArg_ParseTuple(arguments, "pi", &enabled, &dtype)) return nullptr;
  Recorder::current().autocast = enabled != 0;
  Recorder::current().autocast_dtype = static_cast<uint8_t>(dtype);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"autocast_state", guarded<autocast_state>, METH_NOARGS, "autocast_state(): whether operations choose dtypes, and the code of the lower one."},
    {"set_autocast_state", guarded<set_autocast_state>, METH_VARARGS, "set_autocast_state(enabled, dtype): from now on, in this thread."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef methods[] = {
    {"__enter__", guarded<enter>, METH_NOARGS, "Begin the region."},
    {"__exit__", guarded<leave>, METH_VARARGS, "End the region: what held before holds again."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, slot<make>()},
    {Py_tp_init, slot<initialise>()},
    {Py_tp_dealloc, slot<dealloc>()},
    {Py_tp_methods, methods},
    {0, nullptr},
};

}  // namespace

Autocast::Autocast(AutocastPolicy policy, PyObject* const* arguments, size_t count) : recorder_(Recorder::current()) {
  uint8_t dtype = dtype_for(policy, recorder_.autocast_dtype, arguments, count);
  cast_.reserve(count);
  recorder_.autocast = false;
  for (size_t i = 0; i < count && !failed_; ++i) {
    PyObject* made = cast_argument(arguments[i], dtype);
    failed_ = !made;
    if (made) cast_.push_back(made);
  }
}

Autocast::~Autocast() {
  recorder_.autocast = true;
  for (PyObject* object : cast_) Py_DECREF(object);
}

PyObject* call_in_region(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count) {
  Autocast cast(op->autocast, arguments, count);
  return cast.arguments() ? call_operation(op, attributes, cast.arguments(), count) : nullptr;
}

int add_autocast_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.AutocastMode", sizeof(PyAutocastMode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type || PyModule_AddObject(module, "AutocastMode", type) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace twofold
