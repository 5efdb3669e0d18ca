// The base class of shapes: a tuple of which slices, sums and multiples are of the same class.
#pragma once

#include <Python.h>

namespace twofold {

int add_size_type(PyObject* module);

}  // namespace twofold
