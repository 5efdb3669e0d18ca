// Compiled Python functions: dispatch by input types without a line of Python.
#pragma once

typedef struct _object PyObject;

namespace twofold {

int add_compiled_type(PyObject* module);

}  // namespace twofold
