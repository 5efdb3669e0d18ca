// The type `Expression` of the module, see expression.cc.
#pragma once

typedef struct _object PyObject;

namespace twofold {

// -1 with a Python error set.
int add_expression_type(PyObject* module);

}  // namespace twofold
