#include "torch_function.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "guard.h"
#include "owned.h"

namespace twofold {
namespace {

PyObject* disabled_function = nullptr;  // `__torch_function__` of classes of tensors that handle no call

PyObject* method_name() {
  static PyObject* const name = PyUnicode_InternFromString("__torch_function__");
  return name;
}

// Whether the class of a tensor, which is not the class of all tensors, handles calls.
bool tensor_handles(PyObject* argument) {
  if (Py_TYPE(argument) == tensor_type || !TorchFunction::used_ || TorchFunction::disabled_ || !is_tensor(argument)) return false;
  Owned method(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(argument)), method_name()));
  if (!method) PyErr_Clear();
  return method && method.object != disabled_function;
}

// Whether the class of an argument, which Python defined, handles calls.
bool class_handles(PyObject* argument) {
  PyTypeObject* type = Py_TYPE(argument);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  if (is_tensor(argument)) return tensor_handles(argument);
  return !PyType_Check(argument) && PyObject_HasAttr(reinterpret_cast<PyObject*>(type), method_name());
}

template <class Predicate>
bool any_in(PyObject* argument, Predicate predicate) {
  if (!(Py_TYPE(argument)->tp_flags & (Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS))) return predicate(argument);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(argument); ++i) {
    const Owned item(Py_NewRef(PySequence_Fast_GET_ITEM(argument, i)));  // looking at its class may run Python, which may change the list
    if (predicate(item.object)) return true;
  }
  return false;
}

// Adds the class of an argument, or of the elements of a list or tuple: classes before those they derive from.
void add_classes(PyObject* argument, std::vector<PyObject*>& classes, bool inside = false) {
  if (!inside && (PyList_Check(argument) || PyTuple_Check(argument))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(argument); ++i) {
      add_classes(PySequence_Fast_GET_ITEM(argument, i), classes, true);
    }
    return;
  }
  if (!class_handles(argument)) return;
  auto* type = Py_TYPE(argument);
  auto* object = reinterpret_cast<PyObject*>(type);
  if (std::find(classes.begin(), classes.end(), object) != classes.end()) return;
  classes.insert(std::find_if(classes.begin(), classes.end(), [type](PyObject* other) {
    return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(other));
  }), object);
}

PyObject* none_implemented(PyObject* callable, PyObject* types) {
  PyErr_Format(PyExc_TypeError, "no implementation found for %R on types that implement __torch_function__: %R", callable, types);
  return nullptr;
}

}  // namespace

bool TorchFunction::handles(PyObject* argument) { return any_in(argument, class_handles); }

bool TorchFunction::any_tensor_handles(PyObject* const* arguments, Py_ssize_t count) {
  return std::any_of(arguments, arguments + count, [](PyObject* argument) { return any_in(argument, tensor_handles); });
}

namespace {

// Asks the mode and the classes of the relevant arguments, which may be fewer than those of the call.
PyObject* ask(PyObject* callable, PyObject* const* relevant, Py_ssize_t count, PyObject* args, PyObject* keywords) {
  std::vector<PyObject*> classes;
  for (Py_ssize_t i = 0; i < count; ++i) add_classes(relevant[i], classes);
  Owned mode(Py_XNewRef(TorchFunction::mode_));
  Owned types(PyTuple_New(static_cast<Py_ssize_t>(classes.size())));
  if (!types) return nullptr;
  for (size_t i = 0; i < classes.size(); ++i) PyTuple_SET_ITEM(types.object, static_cast<Py_ssize_t>(i), Py_NewRef(classes[i]));
  if (mode) {
    PyObject* result = PyObject_CallFunctionObjArgs(mode.object, callable, types.object, args, keywords, nullptr);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  bool tensors = false;
  for (PyObject* type : classes) {
    PyObject* result = PyObject_CallMethod(type, "__torch_function__", "OOOO", callable, types.object, args, keywords);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    tensors |= PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type) != 0;
  }
  return tensors ? none_implemented(callable, types.object) : nullptr;
}

}  // namespace

PyObject* TorchFunction::call(PyObject* callable, PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  Py_ssize_t count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
  if (!mode_ && std::none_of(arguments, arguments + count, handles)) return nullptr;
  Owned args(PyTuple_New(positional)), keywords(PyDict_New());
  if (!args || !keywords) return nullptr;
  for (Py_ssize_t i = 0; i < positional; ++i) PyTuple_SET_ITEM(args.object, i, Py_NewRef(arguments[i]));
  for (Py_ssize_t i = positional; i < count; ++i) {
    if (PyDict_SetItem(keywords.object, PyTuple_GET_ITEM(names, i - positional), arguments[i]) < 0) return nullptr;
  }
  return ask(callable, arguments, count, args.object, keywords.object);
}

namespace {

// Whether the classes of tensors handle no call while this lives.
class Disabled {
 public:
  Disabled() : before_(std::exchange(TorchFunction::disabled_, true)) {}
  Disabled(const Disabled&) = delete;
  ~Disabled() { TorchFunction::disabled_ = before_; }

 private:
  bool before_;
};

PyObject* call_plainly(PyObject*, PyObject* arguments) {
  PyObject *function, *types, *args = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO|OO", &function, &types, &args, &keywords)) return nullptr;
  Owned positional(args ? PySequence_Tuple(args) : PyTuple_New(0));
  if (!positional) return nullptr;
  const Disabled scope;
  return PyObject_Call(function, positional.object, keywords && keywords != Py_None ? keywords : nullptr);
}

PyObject* use_torch_function(PyObject*, PyObject*) {
  TorchFunction::used_ = true;
  Py_RETURN_NONE;
}

PyObject* set_torch_function_disabled(PyObject*, PyObject* disabled) {
  int wanted = PyObject_IsTrue(disabled);
  return wanted < 0 ? nullptr : PyBool_FromLong(std::exchange(TorchFunction::disabled_, wanted != 0));
}

// set_torch_function_mode(function or None) -> the one before
PyObject* set_torch_function_mode(PyObject*, PyObject* function) {
  TorchFunction::used_ = true;
  PyObject* before = std::exchange(TorchFunction::mode_, function == Py_None ? nullptr : Py_NewRef(function));
  return before ? before : Py_NewRef(Py_None);
}

PyObject* has_torch_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return PyBool_FromLong(TorchFunction::mode_ || std::any_of(arguments, arguments + count, class_handles));
}

// call_torch_function(function, relevant, args, kwargs) -> result
PyObject* call_torch_function(PyObject*, PyObject* arguments) {
  PyObject *function, *relevant, *args, *keywords;
  if (!PyArg_ParseTuple(arguments, "OO!O!O!", &function, &PyTuple_Type, &relevant, &PyTuple_Type, &args, &PyDict_Type, &keywords)) return nullptr;
  PyObject* result = ask(function, &PyTuple_GET_ITEM(relevant, 0), PyTuple_GET_SIZE(relevant), args, keywords);
  if (result || PyErr_Occurred()) return result;
  Owned types(PyTuple_New(PyTuple_GET_SIZE(relevant)));
  for (Py_ssize_t i = 0; types && i < PyTuple_GET_SIZE(relevant); ++i) {
    PyTuple_SET_ITEM(types.object, i, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(relevant, i)))));
  }
  return types ? none_implemented(function, types.object) : nullptr;
}

PyMethodDef functions[] = {
    {"has_torch_function", method<has_torch_function>(), METH_FASTCALL,
     "has_torch_function(*arguments): whether a mode, or the class of an argument, handles calls."},
    {"call_torch_function", guarded<call_torch_function>, METH_VARARGS,
     "call_torch_function(function, relevant, args, kwargs): what the first class of the relevant arguments makes of a call."},
    {"disabled_torch_function", guarded<call_plainly>, METH_VARARGS,
     "disabled_torch_function(function, types, args=(), kwargs=None): call a function, whose calls the classes of tensors do not handle."},
    {"use_torch_function", guarded<use_torch_function>, METH_NOARGS,
     "use_torch_function(): from now on the classes of tensors are asked for `__torch_function__`."},
    {"set_torch_function_disabled", guarded<set_torch_function_disabled>, METH_O,
     "set_torch_function_disabled(flag): whether the classes of tensors handle no call of this thread; returns what it was."},
    {"set_torch_function_mode", guarded<set_torch_function_mode>, METH_O,
     "set_torch_function_mode(function): what handles the calls of this thread first, or None; returns what it was."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_torch_function(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return -1;
  disabled_function = PyObject_GetAttrString(module, "disabled_torch_function");
  return disabled_function ? 0 : -1;
}

}  // namespace twofold
