// Interned nodes of the primitive graph, as Python sees them.
#pragma once

typedef struct _object PyObject;

namespace twofold {

int add_node_type(PyObject* module);

}  // namespace twofold
