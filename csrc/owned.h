// An owned reference to a Python object, released at the end of its scope.
#pragma once

#include <Python.h>

namespace twofold {

struct Owned {
  PyObject* object;
  explicit Owned(PyObject* o) : object(o) {}
  Owned(const Owned&) = delete;
  ~Owned() { Py_XDECREF(object); }
  explicit operator bool() const { return object != nullptr; }
};

}  // namespace twofold
