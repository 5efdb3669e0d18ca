// A context manager that switches the recording of gradients.
#pragma once

typedef struct _object PyObject;

namespace twofold {

int add_gradient_mode_type(PyObject* module);

}  // namespace twofold
