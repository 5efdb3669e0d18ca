// Nodes of the primitive graph: immutable, and interned while alive, so that equal nodes are one object.
#include <Python.h>
#include <structmember.h>

#include "node.h"

#include <unordered_set>
#include <vector>

#include "guard.h"
#include "op_instance.h"

namespace twofold {
namespace {

struct PyNode {
  PyObject_HEAD
  PyObject* op;
  PyObject* attributes;     // the tuple
  PyObject* inputs;         // a tuple of nodes
  PyObject* type;           // TensorType
  PyObject* weak_references;
  uint64_t id;
  uint64_t hash;
  Attributes* key;          // attributes by value; held
};

PyTypeObject* node_type = nullptr;

PyNode* as_node(PyObject* object) { return reinterpret_cast<PyNode*>(object); }

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 31);
}

// The key of the intern table.
struct Wanted {
  PyObject* op;
  const Attributes* key;
  PyObject* inputs;
  PyObject* type;
  uint64_t hash;
};

struct Hash {
  using is_transparent = void;
  size_t operator()(const PyNode* n) const { return n->hash; }
  size_t operator()(const Wanted& w) const { return w.hash; }
};

bool same_inputs(PyObject* a, PyObject* b) {
  Py_ssize_t n = PyTuple_GET_SIZE(a);
  if (n != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyTuple_GET_ITEM(a, i) != PyTuple_GET_ITEM(b, i)) return false;
  }
  return true;
}

struct Equal {
  using is_transparent = void;
  bool operator()(const PyNode* a, const PyNode* b) const { return a == b; }
  bool operator()(const Wanted& w, const PyNode* n) const {
    return w.op == n->op && w.key == n->key && w.type == n->type && same_inputs(w.inputs, n->inputs);
  }
  bool operator()(const PyNode* n, const Wanted& w) const { return (*this)(w, n); }
};

std::unordered_set<PyNode*, Hash, Equal>& interned() {
  static auto& table = *new std::unordered_set<PyNode*, Hash, Equal>();
  return table;
}

// Nodes to be destroyed, so that a deep graph is freed without recursion.
std::vector<PyNode*>& dying() {
  static auto& list = *new std::vector<PyNode*>();
  return list;
}

void dealloc(PyObject* self) {
  PyNode* node = as_node(self);
  interned().erase(node);  // first of all: callbacks of weak references may make an equal node, which would be this one
  if (node->weak_references) PyObject_ClearWeakRefs(self);
  auto& list = dying();
  list.push_back(node);
  if (list.size() > 1) return;
  for (size_t next = 0; next < list.size(); ++next) {
    PyNode* dead = list[next];
    Py_XDECREF(dead->op);
    Py_XDECREF(dead->attributes);
    Py_XDECREF(dead->inputs);
    Py_XDECREF(dead->type);
    if (dead->key) --dead->key->references;
    PyTypeObject* type = Py_TYPE(reinterpret_cast<PyObject*>(dead));
    type->tp_free(dead);
    Py_DECREF(type);
  }
  list.clear();
}

// make_node(op, attrs, inputs, type) -> node
PyObject* make_node(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  static uint64_t next_id = 0;
  if (count != 4) return PyErr_Format(PyExc_TypeError, "make_node takes op, attrs, inputs and type, got %zd arguments", count);
  const AttributesRef key = attributes_of(arguments[1]);
  PyObject* inputs = key ? PySequence_Tuple(arguments[2]) : nullptr;
  if (!inputs) return nullptr;
  Wanted wanted{arguments[0], key, inputs, arguments[3], 0};
  uint64_t h = mix(reinterpret_cast<uintptr_t>(wanted.op) >> 4, key->id);
  h = mix(h, reinterpret_cast<uintptr_t>(wanted.type) >> 4);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
    PyObject* input = PyTuple_GET_ITEM(inputs, i);
    if (Py_TYPE(input) != node_type) {
      Py_DECREF(inputs);
      return PyErr_Format(PyExc_TypeError, "input %zd of a node is a %s, not a node", i, Py_TYPE(input)->tp_name);
    }
    h = mix(h, as_node(input)->id);
  }
  wanted.hash = h;
  auto found = interned().find(wanted);
  if (found != interned().end()) {
    Py_DECREF(inputs);
    Py_INCREF(*found);
    return reinterpret_cast<PyObject*>(*found);
  }
  auto* node = as_node(node_type->tp_alloc(node_type, 0));
  if (!node) {
    Py_DECREF(inputs);
    return nullptr;
  }
  Py_INCREF(wanted.op);
  Py_INCREF(key->tuple);
  Py_INCREF(wanted.type);
  node->op = wanted.op;
  node->attributes = key->tuple;
  node->inputs = inputs;
  node->type = wanted.type;
  node->id = next_id++;
  node->hash = h;
  node->key = key;
  ++key->references;
  interned().insert(node);
  return reinterpret_cast<PyObject*>(node);
}

// topological(outputs) -> every node below, inputs first; the order follows from the structure alone.
PyObject* topological(PyObject*, PyObject* outputs) {
  PyObject* roots = PySequence_Fast(outputs, "topological takes an iterable of nodes");
  PyObject* order = roots ? PyList_New(0) : nullptr;
  if (!order) {
    Py_XDECREF(roots);
    return nullptr;
  }
  std::unordered_set<PyNode*> seen;
  std::vector<std::pair<PyNode*, Py_ssize_t>> stack;
  bool failed = false;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(roots) && !failed; ++k) {
    PyObject* root = PySequence_Fast_GET_ITEM(roots, k);
    if (Py_TYPE(root) != node_type) {
      PyErr_Format(PyExc_TypeError, "topological: %s is not a node", Py_TYPE(root)->tp_name);
      failed = true;
      break;
    }
    if (seen.insert(as_node(root)).second) stack.emplace_back(as_node(root), 0);
    while (!stack.empty() && !failed) {
      auto& [node, position] = stack.back();
      if (position < PyTuple_GET_SIZE(node->inputs)) {
        PyNode* input = as_node(PyTuple_GET_ITEM(node->inputs, position++));
        if (seen.insert(input).second) stack.emplace_back(input, 0);
      } else {
        failed = PyList_Append(order, reinterpret_cast<PyObject*>(node)) < 0;
        stack.pop_back();
      }
    }
  }
  Py_DECREF(roots);
  if (failed) Py_CLEAR(order);
  return order;
}

PyObject* get_shape(PyObject* self, void*) { return PyObject_GetAttrString(as_node(self)->type, "shape"); }
PyObject* get_dtype(PyObject* self, void*) { return PyObject_GetAttrString(as_node(self)->type, "dtype"); }
PyObject* get_ndim(PyObject* self, void*) { return PyObject_GetAttrString(as_node(self)->type, "ndim"); }

PyObject* represent(PyObject* self) {
  PyObject* name = PyObject_GetAttrString(as_node(self)->op, "name");
  if (!name) return nullptr;
  PyObject* text = PyUnicode_FromFormat("%%%llu:%S=%S", static_cast<unsigned long long>(as_node(self)->id), as_node(self)->type, name);
  Py_DECREF(name);
  return text;
}

PyMemberDef members[] = {
    {"op", T_OBJECT_EX, offsetof(PyNode, op), READONLY, "The operation."},
    {"attrs", T_OBJECT_EX, offsetof(PyNode, attributes), READONLY, "Its attributes, a tuple."},
    {"inputs", T_OBJECT_EX, offsetof(PyNode, inputs), READONLY, "The nodes it is applied to."},
    {"type", T_OBJECT_EX, offsetof(PyNode, type), READONLY, "Dtype and shape of the result."},
    {"id", T_ULONGLONG, offsetof(PyNode, id), READONLY, "A number that grows with each node made."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"shape", guarded<get_shape>, nullptr, "Shape of the result.", nullptr},
    {"dtype", guarded<get_dtype>, nullptr, "Element type of the result.", nullptr},
    {"ndim", guarded<get_ndim>, nullptr, "Number of axes of the result.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, slot<dealloc>()},
    {Py_tp_repr, slot<represent>()},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {0, nullptr},
};

PyMethodDef functions[] = {
    {"make_node", method<make_node>(), METH_FASTCALL,
     "make_node(op, attrs, inputs, type): the one node with these fields."},
    {"topological", guarded<topological>, METH_O, "topological(outputs): all nodes below, inputs first."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_node_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.Node", sizeof(PyNode), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return -1;
  node_type = reinterpret_cast<PyTypeObject*>(type);
  node_type->tp_new = nullptr;
  Py_INCREF(type);
  if (PyModule_AddObject(module, "Node", type) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace twofold
