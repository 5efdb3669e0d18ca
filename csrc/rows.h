// Rows of tables, see rows.cc.
#pragma once

typedef struct _object PyObject;

namespace twofold {

int add_row_functions(PyObject* module);

}  // namespace twofold
