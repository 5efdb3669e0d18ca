// Callables for operations without attributes: the fast way from a Python call into the recorder.
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "autocast.h"
#include "call_memo.h"
#include "guard.h"
#include "owned.h"
#include "purity.h"
#include "tensor.h"
#include "torch_function.h"

namespace twofold {
namespace {

PyTypeObject* callable_type = nullptr;

struct PyOperation {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  Operation* operation;
  Py_ssize_t arity;
  AutocastPolicy autocast;
  bool checks_numbers;   // `slow` compares Python numbers with the range of the dtype beside them
  PyObject* slow;        // handles keywords, nodes and everything unusual
  PyObject* dictionary;  // __name__, __doc__, __signature__
  CallMemo* memo;        // owned; the memo of a function whose calls depend on types only, else null
  PyObject* deferred;    // if it is lazily loaded, what `slow` is called with, else null
};

// Adds the function, its operands and the user's line to the current error.
void locate_error(PyObject* function, PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_ssize_t count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
  PyObject* operands = PyTuple_New(count);
  for (Py_ssize_t i = 0; operands && i < count; ++i) {
    Py_INCREF(arguments[i]);
    PyTuple_SET_ITEM(operands, i, arguments[i]);
  }
  PyObject* located = operands ? PyObject_CallFunctionObjArgs(hooks.locate_error, value, function, operands, names ? names : Py_None, nullptr) : nullptr;
  Py_XDECREF(operands);
  if (!located) {
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return;
  }
  if (located == value) {
    Py_DECREF(located);
    PyErr_Restore(type, value, traceback);
    return;
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(located)), located);
  Py_DECREF(located);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

// Position of the keyword `out`, or -1.
Py_ssize_t position_of_out(PyObject* names) {
  static PyObject* const out = PyUnicode_InternFromString("out");
  for (Py_ssize_t i = 0, count = names ? PyTuple_GET_SIZE(names) : 0; i < count; ++i) {
    if (PyTuple_GET_ITEM(names, i) == out || PyUnicode_Compare(PyTuple_GET_ITEM(names, i), out) == 0) return i;
  }
  return -1;
}

// Calls `slow` without the keyword at `position` and writes the result to the tensors given there.
PyObject* call_into(PyObject* slow, PyObject* const* arguments, Py_ssize_t count, PyObject* names, Py_ssize_t position) {
  Py_ssize_t keywords = PyTuple_GET_SIZE(names);
  PyObject* fewer = PyTuple_New(keywords - 1);
  if (!fewer) return nullptr;
  std::vector<PyObject*> kept(arguments, arguments + count + keywords);
  PyObject* target = kept[static_cast<size_t>(count + position)];
  kept.erase(kept.begin() + count + position);
  for (Py_ssize_t i = 0; i < keywords - 1; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i < position ? i : i + 1);
    Py_INCREF(name);
    PyTuple_SET_ITEM(fewer, i, name);
  }
  PyObject* result = PyObject_Vectorcall(slow, kept.data(), static_cast<size_t>(count), keywords > 1 ? fewer : nullptr);
  Py_DECREF(fewer);
  if (!result || target == Py_None) return result;
  PyObject* written = PyObject_CallFunctionObjArgs(hooks.write_out, target, result, nullptr);
  Py_DECREF(result);
  return written;
}

// The magnitude of a Python number, 0 where it is not finite; false for other objects and what a long cannot hold.
bool magnitude(PyObject* number, double* out) {
  int overflow = 0;
  if (PyFloat_Check(number)) *out = std::fabs(PyFloat_AS_DOUBLE(number));
  else if (PyLong_Check(number)) *out = std::fabs(static_cast<double>(PyLong_AsLongAndOverflow(number, &overflow)));
  else return false;
  if (!std::isfinite(*out)) *out = 0;
  return !overflow;
}

// Whether `slow` would accept a call with a tensor among its arguments, all of them tensors or Python numbers.
bool passes_checks(PyObject* const* arguments, Py_ssize_t count) {
  constexpr double kLargestInt8 = 127, kLargestFloat16 = 65504, kLargestBFloat16 = 3.3895313892515355e38;
  double largest = 0;
  bool floats = false, integers = false, float16 = false, fractions = false, numbers = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    double size = 0;
    if (is_tensor(arguments[i])) {
      uint8_t dtype = reinterpret_cast<PyTensor*>(arguments[i])->value->type->dtype;
      floats |= is_differentiable(dtype);
      integers |= !is_differentiable(dtype) && dtype != kBool;
      float16 |= dtype == kFloat16;
    } else if (magnitude(arguments[i], &size)) {
      fractions |= PyFloat_Check(arguments[i]) != 0;
      largest = std::max(largest, size);
      numbers = true;
    } else {
      return false;
    }
  }
  if (!numbers) return true;
  if (integers || !floats) return !fractions && largest <= kLargestInt8;
  return largest <= (float16 ? kLargestFloat16 : kLargestBFloat16);
}

// The arity of a function of a library, which the class of no argument handles.
constexpr Py_ssize_t kLibrary = -2;

// The function that users know for one that the library calls, its attribute `public`, or itself; borrowed.
PyObject* public_of(PyOperation* op) {
  static PyObject* const name = PyUnicode_InternFromString("public");
  PyObject* found = op->dictionary ? PyDict_GetItemWithError(op->dictionary, name) : nullptr;
  return found ? found : reinterpret_cast<PyObject*>(op);
}

// Calls `slow`, unless the class of an argument handles the call.
PyObject* call_slow(const PyOperation* op, PyObject* const* arguments, size_t flags, PyObject* names) {
  Py_ssize_t positional = PyVectorcall_NARGS(flags);
  const PyObject* self = reinterpret_cast<const PyObject*>(op);
  if (op->arity != kLibrary && std::any_of(arguments, arguments + positional + (names ? PyTuple_GET_SIZE(names) : 0), TorchFunction::handles)) {
    PyObject* result = TorchFunction::call(const_cast<PyObject*>(self), arguments, positional, names);
    if (result || PyErr_Occurred()) return result;
  }
  return PyObject_Vectorcall(op->slow, arguments, flags, names);
}

// Replays the recipe of a key, or calls `slow`, perhaps to learn it.
PyObject* call_known(const PyOperation* op, CallMemo& memo, const CallKey& key, PyObject* const* arguments, size_t flags, PyObject* names) {
  if (auto known = memo.find(key)) return known->repeat(key);
  if (!memo.tries()) return PyObject_Vectorcall(op->slow, arguments, flags, names);
  CallWatch watch(key);
  PyObject* result = PyObject_Vectorcall(op->slow, arguments, flags, names);
  if (result) memo.add(key, watch.recipe(result));
  return result;
}

// Calls `slow`, or replays its recipe for arguments of the same types and values.
PyObject* call_by_types(const PyOperation* op, PyObject* const* arguments, size_t flags, PyObject* names) {
  if (Recorder::current().autocast) return call_slow(op, arguments, flags, names);
  CallMemo& memo = *op->memo;  // a callable that is loaded meanwhile takes it from this one
  if (memo.indices()) {
    CallKey key(memo);
    if (key.read_indices(arguments, PyVectorcall_NARGS(flags), names)) return call_known(op, memo, key, arguments, flags, names);
  }
  CallKey key(memo);
  return key.read(arguments, PyVectorcall_NARGS(flags), names) ? call_known(op, memo, key, arguments, flags, names)
                                                               : call_slow(op, arguments, flags, names);
}

// After a call raised TypeError: its keywords under the names that the function has for them, or null.
PyObject* renamed_keywords(PyObject* function, PyObject* names) {
  if (!names || !PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* renamed = PyObject_CallFunctionObjArgs(hooks.renamed_keywords, function, names, nullptr);
  PyErr_Clear();
  if (renamed == Py_None) Py_CLEAR(renamed);
  if (!renamed) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return renamed;
}

// After a call raised: the result of `__torch_function__` unless it was `asked` before, or the error, with the user's line unless
// `worded`.
PyObject* after_failure(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names, bool asked, bool worded = false) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result = asked ? nullptr : TorchFunction::call(self, arguments, count, names);
  if (result || PyErr_Occurred()) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return result;
  }
  PyErr_Restore(type, value, traceback);
  if (!worded) locate_error(reinterpret_cast<PyOperation*>(self)->slow, arguments, count, names);
  return nullptr;
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* op = reinterpret_cast<PyOperation*>(self);
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (op->arity != kLibrary && TorchFunction::handled_first(arguments, count + (names ? PyTuple_GET_SIZE(names) : 0))) {
    PyObject* result = TorchFunction::call(public_of(op), arguments, count, names);
    if (result || PyErr_Occurred()) return result;
  }
  if (Autocast::applies(op->autocast)) {
    Autocast cast(op->autocast, arguments, static_cast<size_t>(count + (names ? PyTuple_GET_SIZE(names) : 0)));
    return cast.arguments() ? call(self, cast.arguments(), static_cast<size_t>(count), names) : nullptr;
  }
  if (op->operation && count == op->arity && !names && std::any_of(arguments, arguments + count, is_tensor) &&
      (!op->checks_numbers || passes_checks(arguments, count))) {
    PyObject* made = call_operation(op->operation, no_attributes(), arguments, static_cast<size_t>(count));
    return made || std::all_of(arguments, arguments + count, is_tensor) ? made : after_failure(self, arguments, count, names, false, true);
  }
  Py_ssize_t position = op->arity < 0 && !op->memo ? -1 : position_of_out(names);
  bool into = position >= 0 && op->arity >= 0;
  PyObject* result = into                    ? call_into(op->slow, arguments, count, names, position)
                     : position < 0 && op->memo ? call_by_types(op, arguments, flags, names)
                                                : call_slow(op, arguments, flags, names);
  if (result) return result;
  if (const Owned renamed{renamed_keywords(op->slow, names)}) return call(self, arguments, flags, renamed.object);
  return after_failure(self, arguments, count, names, !into);
}

// A lazily loaded callable: at first use `slow` makes the callable that replaces it.
PyObject* first_call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names);

bool is_deferred(const PyOperation* op) { return op->deferred != nullptr; }

bool load(PyOperation* op) {
  PyObject *loader = op->slow, *name = op->deferred;
  Py_INCREF(loader);
  Py_INCREF(name);
  PyObject* python = PyObject_CallOneArg(loader, name);
  auto* found = reinterpret_cast<PyOperation*>(python);
  bool done = python && Py_TYPE(python) == callable_type && !is_deferred(found);
  if (python && !done) PyErr_SetString(PyExc_TypeError, "the loader of a callable must make a callable of the core");
  if (done && is_deferred(op)) {  // else another thread was faster
    PyObject header = op->ob_base;
    *op = *found;
    op->ob_base = header;
    found->memo = nullptr;
    Py_INCREF(op->slow);
    Py_INCREF(op->dictionary);
    Py_DECREF(loader);
    Py_DECREF(name);
  }
  Py_XDECREF(python);
  Py_DECREF(loader);
  Py_DECREF(name);
  return done;
}

PyObject* first_call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* op = reinterpret_cast<PyOperation*>(self);
  return is_deferred(op) && !load(op) ? nullptr : call(self, arguments, flags, names);
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  auto* op = reinterpret_cast<PyOperation*>(self);
  // isinstance() reads __class__ of other types.
  if (is_deferred(op) && PyUnicode_CompareWithASCIIString(name, "__class__") != 0 && !load(op)) return nullptr;
  return PyObject_GenericGetAttr(self, name);
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  auto* op = reinterpret_cast<PyOperation*>(self);
  return is_deferred(op) && !load(op) ? -1 : PyObject_GenericSetAttr(self, name, value);
}

// A function of operands is a method of tensors alone: as an attribute of another class it stays a function, like PyTorch's
// builtin ones, so that `act = torch.tanh` in the body of a module is called as `self.act(x)`.
PyObject* bind_method(PyObject* self, PyObject* instance, PyObject*) {
  bool is_method = instance && (is_tensor(instance) || reinterpret_cast<PyOperation*>(self)->arity == kLibrary);
  if (!is_method || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

void dealloc(PyObject* self) {
  auto* op = reinterpret_cast<PyOperation*>(self);
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(op->slow);
  Py_XDECREF(op->dictionary);
  Py_XDECREF(op->deferred);
  delete op->memo;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOperation, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyOperation, dictionary), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(PyOperation, slow), READONLY, nullptr},
    {"arity", T_PYSSIZET, offsetof(PyOperation, arity), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, slot<dealloc>()},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, slot<bind_method>()},
    {Py_tp_getattro, slot<get_attribute>()},
    {Py_tp_setattro, slot<set_attribute>()},
    {Py_tp_members, members},
    {0, nullptr},
};

// operation_callable(op, arity, slow, autocast="", checks_numbers=False, by_types=False, indices=False) -> callable; without an op
// every call goes to `slow`, which for a negative arity handles the keyword `out`. Its __wrapped__ is `slow`. `by_types`: the
// operations that `slow` calls depend on the types of its tensors and on the other arguments only. `indices`: it takes a tensor
// and an index of it, perhaps also what is written there; positions and a number to write are operands as they are.
PyObject* operation_callable(PyObject*, PyObject* arguments) {
  PyObject *python, *slow, *autocast = nullptr;
  Py_ssize_t arity;
  int checks_numbers = 0, by_types = 0, indices = 0;
  if (!PyArg_ParseTuple(arguments, "OnO|Uppp", &python, &arity, &slow, &autocast, &checks_numbers, &by_types, &indices)) return nullptr;
  Operation* operation = python == Py_None ? nullptr : operation_of(python);
  if (!operation && python != Py_None) return nullptr;
  auto* made = reinterpret_cast<PyOperation*>(callable_type->tp_alloc(callable_type, 0));
  if (!made) return nullptr;
  made->vectorcall = guarded<call>;
  made->operation = operation;
  made->arity = arity;
  made->autocast = autocast ? autocast_policy(autocast) : AutocastPolicy::kNone;
  made->checks_numbers = checks_numbers;
  made->slow = slow;
  made->memo = by_types ? new CallMemo(indices) : nullptr;
  made->dictionary = PyDict_New();
  Py_INCREF(slow);
  return reinterpret_cast<PyObject*>(made);
}

// deferred_callable(load, name) -> callable that is replaced by `load(name)` at first use.
PyObject* deferred_callable(PyObject*, PyObject* arguments) {
  PyObject *loader, *name;
  if (!PyArg_ParseTuple(arguments, "OU", &loader, &name)) return nullptr;
  auto* made = reinterpret_cast<PyOperation*>(callable_type->tp_alloc(callable_type, 0));
  if (!made) return nullptr;
  made->vectorcall = guarded<first_call>;
  made->slow = loader;
  made->deferred = name;
  Py_INCREF(loader);
  Py_INCREF(name);
  return reinterpret_cast<PyObject*>(made);
}

// record(op, attrs, inputs) -> tensor
PyObject* record(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "record takes 3 arguments, not %zd", count);
  Operation* operation = operation_of(arguments[0]);
  const AttributesRef attributes = operation ? attributes_of(arguments[1]) : nullptr;
  if (!attributes) return nullptr;
  const Owned inputs(PySequence_Tuple(arguments[2]));  // a list may change while rules of Python are asked
  if (!inputs) return nullptr;
  return call_operation(operation, attributes, &PyTuple_GET_ITEM(inputs.object, 0), static_cast<size_t>(PyTuple_GET_SIZE(inputs.object)));
}

PyObject* not_by_types(PyObject*, PyObject*) {
  CallWatch::spoil();
  if (Purity::is_broken()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* forget_calls_by_types(PyObject*, PyObject*) {
  CallMemo::forget_all();
  Py_RETURN_NONE;
}

PyObject* set_operator_function(PyObject*, PyObject* arguments) {
  const char* name;
  PyObject* op;
  if (!PyArg_ParseTuple(arguments, "sO", &name, &op)) return nullptr;
  Operation* operation = operation_of(op);
  if (!operation) return nullptr;
  return PyBool_FromLong(set_operator(name, operation));
}

PyMethodDef functions[] = {
    {"operation_callable", guarded<operation_callable>, METH_VARARGS, "operation_callable(op, arity, slow): a callable that records op."},
    {"deferred_callable", guarded<deferred_callable>, METH_VARARGS,
     "deferred_callable(load, name): a callable that becomes what load(name) returns when it is first touched."},
    {"not_by_types", guarded<not_by_types>, METH_NOARGS,
     "not_by_types(): the calls of functions by types that are going on must not be repeated without Python."},
    {"forget_calls_by_types", guarded<forget_calls_by_types>, METH_NOARGS,
     "forget_calls_by_types(): all functions by types run in Python again, as something else that they depend on has changed."},
    {"record", method<record>(), METH_FASTCALL,
     "record(op, attrs, inputs): record one call on tensors and numbers."},
    {"set_operator", guarded<set_operator_function>, METH_VARARGS,
     "set_operator(name, op): make op the operator; False if it has no slot of its own."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_operation_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.Operation", sizeof(PyOperation), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return -1;
  callable_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace twofold
