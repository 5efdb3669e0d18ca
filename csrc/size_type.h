// The base class of shapes.
#pragma once

#include <Python.h>

namespace twofold {

int add_size_type(PyObject* module);

}  // namespace twofold
