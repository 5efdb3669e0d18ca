// `__torch_function__`: classes of arguments, and modes, that handle calls of public functions, methods and operators.
#pragma once

#include <Python.h>

#include "tensor.h"

namespace twofold {

class TorchFunction {
 public:
  // Whether the class of the argument, or of an element of a list or tuple, handles calls.
  static bool handles(PyObject* argument);
  // Whether a mode, or the class of a tensor among the arguments, handles calls: it is asked before anything else is done.
  static bool handled_first(PyObject* const* arguments, Py_ssize_t count) { return used_ && (mode_ || any_tensor_handles(arguments, count)); }

  // The result of the mode or of the first `__torch_function__`: null without an error if there is none, or if all return
  // NotImplemented, which is an error where the class of a tensor was asked.
  static PyObject* call(PyObject* callable, PyObject* const* arguments, Py_ssize_t positional, PyObject* names);

  static bool any_tensor_handles(PyObject* const* arguments, Py_ssize_t count);

  static inline bool used_ = false;                         // whether a class of tensors or a mode ever handled calls
  static inline thread_local bool disabled_ = false;        // for the classes of tensors
  static inline thread_local PyObject* mode_ = nullptr;     // owned; called with (function, types, arguments, keywords)
};

int add_torch_function(PyObject* module);

}  // namespace twofold
