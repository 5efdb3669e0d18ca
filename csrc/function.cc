// Functions: declared graphs as callables of tensors, or of NumPy feeds and fetches.
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "cache.h"
#include "declared.h"
#include "guard.h"
#include "location.h"
#include "open_graph.h"
#include "owned.h"
#include "template.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL twofold_numpy
#include <numpy/arrayobject.h>

namespace twofold {
namespace {

struct Graph {
  std::vector<ValueRef> inputs, outputs;
  std::vector<std::shared_ptr<Specialisation>> specialisations;
  Plans<std::shared_ptr<const OpenGraph>> open;
  bool single = false;
};

struct PyFunction {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  Graph* graph;
  // None, or called with input types for which no graph is declared, and whether it may have symbolic sizes.
  // Raises an error for the user, or returns (inputs, outputs) of a graph declared for these types, or what
  // OpenGraph reads.
  PyObject* check;
};

PyTypeObject* function_type = nullptr;
constexpr size_t kMostSpecialisations = 256;  // of one function, which looks through them
constexpr size_t kMostOpen = 16;              // graphs with symbolic sizes, of one function

CacheAccount& account = *new CacheAccount("specialisations", 1);

std::vector<Graph*>& living_graphs() {
  static auto& list = *new std::vector<Graph*>();
  return list;
}

// Evicts the least recently used of all functions, unless they run: down to three quarters of the budget, and `portion` of
// them in any case; false if there was nothing to evict.
bool drop_specialisations(double portion) {
  std::vector<std::shared_ptr<Specialisation>*> idle;
  account.bytes = account.count = 0;
  for (Graph* graph : living_graphs()) {
    for (auto& known : graph->specialisations) {
      account.bytes += known->memory();
      ++account.count;
      if (known.use_count() == 1) idle.push_back(&known);
    }
  }
  std::sort(idle.begin(), idle.end(), [](const auto* a, const auto* b) { return (*a)->used < (*b)->used; });
  std::vector<std::shared_ptr<Specialisation>> dropped;  // destructors may run Python, which may re-enter
  for (auto* known : idle) {
    if (account.bytes <= account.budget / 4 * 3 && static_cast<double>(dropped.size()) >= static_cast<double>(idle.size()) * portion) break;
    account.bytes -= (*known)->memory();
    dropped.push_back(std::move(*known));
  }
  for (Graph* graph : living_graphs()) std::erase(graph->specialisations, nullptr);
  account.count -= dropped.size();
  account.evictions += dropped.size();
  return !dropped.empty();
}

const bool holds = (add_holder([] { return drop_specialisations(0.125); }), true);

// The graph for inputs of these types: one with symbolic sizes, else one that `check` declares now, or the
// function's own. Null with a Python error set.
std::unique_ptr<Specialisation> specialise_graph(const PyFunction* function, const std::vector<Type*>& types) {
  Graph& graph = *function->graph;
  if (function->check == Py_None) return specialise(graph.inputs, graph.outputs, types);
  using Open = std::shared_ptr<const OpenGraph>;
  std::unique_ptr<Specialisation> found;
  if (const Open holding = graph.open.find([&types](const Open& open) { return open->takes(types) ? open : nullptr; })) {
    if ((found = holding->specialised(types))) {
      ++declared_counts.uses;
      return found;
    }
    PyErr_Clear();  // errors of these sizes are raised with the line that finds them
  }
  Owned tuple(types_tuple(types.data(), types.size()));
  if (!tuple) return nullptr;
  const bool may_add = graph.open.may_add();
  Owned declared(PyObject_CallFunctionObjArgs(function->check, tuple.object, may_add ? Py_True : Py_False, nullptr));
  if (!declared) return nullptr;
  ++declared_counts.graphs;
  if (PyTuple_Check(declared.object) && PyTuple_GET_SIZE(declared.object) == 2) {
    graph.open.attempts += may_add;
    std::vector<ValueRef> inputs, outputs;
    if (!values_of(PyTuple_GET_ITEM(declared.object, 0), inputs) || !values_of(PyTuple_GET_ITEM(declared.object, 1), outputs)) return nullptr;
    return specialise(inputs, outputs, types);
  }
  Open open = OpenGraph::read(declared.object);
  found = open ? open->specialised(types) : nullptr;
  if (!found) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a graph that was declared for all sizes does not take those it was declared with");
    return nullptr;
  }
  ++graph.open.attempts;
  ++declared_counts.open;
  graph.open.add(std::move(open));
  if (graph.open.list.size() > kMostOpen) graph.open.list.pop_back();
  return found;
}

// `type_of_input(i)` is the type of input i.
template <class Types>
std::shared_ptr<Specialisation> specialisation_of(PyFunction* function, Types type_of_input) {
  Graph& graph = *function->graph;
  size_t n = graph.inputs.size();
  for (size_t s = graph.specialisations.size(); s-- > 0;) {
    const auto& known = graph.specialisations[s];
    size_t i = 0;
    while (i < n && known->types[i] == type_of_input(i)) ++i;
    if (i != n) continue;
    ++account.hits;
    known->used = next_use();
    return known;
  }
  ++account.misses;
  std::vector<Type*> types;
  for (size_t i = 0; i < n; ++i) types.push_back(type_of_input(i));
  std::shared_ptr<Specialisation> made = specialise_graph(function, types);
  if (!made) return nullptr;
  made->used = next_use();
  account.bytes += made->memory();
  ++account.count;
  std::shared_ptr<Specialisation> dropped;
  auto& list = graph.specialisations;
  if (list.size() >= kMostSpecialisations) {
    auto oldest = std::min_element(list.begin(), list.end(), [](const auto& a, const auto& b) { return a->used < b->used; });
    account.bytes -= std::min(account.bytes, (*oldest)->memory());
    --account.count;
    ++account.evictions;
    dropped = std::move(*oldest);
    list.erase(oldest);
  }
  list.push_back(made);
  if (account.bytes > account.budget) drop_specialisations(0);
  return made;
}

// The values of the inputs of the executable of a specialisation.
class SourceValues final : public InputValues {
 public:
  SourceValues(const Specialisation& made, const std::vector<ValueRef>& inputs) : made_(made), inputs_(inputs) {}
  InputValue at(size_t input) const override {
    const LeafSource& source = made_.sources[input];
    if (source.input >= 0) return {inputs_[static_cast<size_t>(source.input)].get()};
    return {source.captured.value.get(), true};
  }
  size_t count() const override { return made_.sources.size(); }

 private:
  const Specialisation& made_;
  const std::vector<ValueRef>& inputs_;
};

bool run(PyFunction* function, std::vector<ValueRef>& inputs, std::vector<ValueRef>& outputs) {
  const uint32_t location = capture_location();
  // A reference is held: a host operation may call this function again and clear the table.
  std::shared_ptr<Specialisation> s = specialisation_of(function, [&inputs](size_t i) { return inputs[i]->type; });
  if (!s) return false;
  Executable* executable = s->executable.get();
  std::vector<BufferRef> results;
  if (executable) {
    constexpr size_t kOnStack = 64;
    void* on_stack[kOnStack];
    std::vector<void*> on_heap;
    void** pointers = on_stack;
    if (s->sources.size() > kOnStack) {
      on_heap.resize(s->sources.size());
      pointers = on_heap.data();
    }
    for (size_t k = 0; k < s->sources.size(); ++k) {
      LeafSource& source = s->sources[k];
      pointers[k] = source.input >= 0     ? inputs[static_cast<size_t>(source.input)]->buffer->data
                    : source.captured.value ? source.captured.value->buffer->data
                                            : &source.captured.scalar;
    }
    Interrupts interrupts;
    const SourceValues values(*s, inputs);
    const size_t apart = executable->canonical.outputs.size();
    if (!executable->run(pointers, nullptr, apart, results, s->run_provenance(), interrupts, nullptr, &values)) return false;
  }
  const auto& canonical_outputs = executable ? executable->canonical.outputs : std::vector<Ref>();
  for (const OutputSource& source : s->outputs) {
    if (source.result < 0) {
      outputs.push_back(source.input >= 0 ? inputs[static_cast<size_t>(source.input)] : source.bound);
      continue;
    }
    size_t number = static_cast<size_t>(source.result);
    ValueRef value(new_value(executable->canonical.trace.type_of_ref(canonical_outputs[number])));
    value->buffer = results[number];
    value->location = location;
    outputs.push_back(std::move(value));
  }
  return true;
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  auto* function = reinterpret_cast<PyFunction*>(self);
  size_t count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  if (names || count != function->graph->inputs.size()) {
    return PyErr_Format(PyExc_TypeError, "this function takes %zu tensors, got %zu arguments", function->graph->inputs.size(), count);
  }
  std::vector<ValueRef> inputs, outputs;
  inputs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!is_tensor(arguments[i])) return PyErr_Format(PyExc_TypeError, "argument %zu is of type %s, not a tensor", i, Py_TYPE(arguments[i])->tp_name);
    if (!observe(reinterpret_cast<PyTensor*>(arguments[i]), "a call of a function")) return nullptr;
    inputs.push_back(share(reinterpret_cast<PyTensor*>(arguments[i])->value));
  }
  outputs.reserve(function->graph->outputs.size());
  if (!run(function, inputs, outputs)) return nullptr;
  if (function->graph->single) return wrap(std::move(outputs[0]));
  PyObject* result = PyTuple_New(static_cast<Py_ssize_t>(outputs.size()));
  for (size_t i = 0; result && i < outputs.size(); ++i) {
    PyObject* output = wrap(std::move(outputs[i]));
    if (output) PyTuple_SET_ITEM(result, static_cast<Py_ssize_t>(i), output);
    else Py_CLEAR(result);
  }
  return result;
}

template <class T>
void store(void* data, size_t i, double number) { static_cast<T*>(data)[i] = static_cast<T>(number); }

// Converts numbers and flat lists of numbers without NumPy; false for other objects.
bool quick_feed(PyObject* object, Type* declared, ValueRef* out) {
  if (declared->dtype != kFloat32 && declared->dtype != kFloat64) return false;
  bool list = PyList_CheckExact(object);
  if (!list && !PyFloat_CheckExact(object)) return false;
  int64_t count = list ? static_cast<int64_t>(PyList_GET_SIZE(object)) : 1;
  if (count > 64) return false;
  for (int64_t i = 0; list && i < count; ++i) {
    if (!PyFloat_CheckExact(PyList_GET_ITEM(object, i))) return false;
  }
  ValueRef value(new_value(type_of(declared->dtype, &count, list ? 1 : 0, declared->weak && !list)));
  value->buffer = BufferRef(new_buffer(static_cast<size_t>(value->type->nbytes)));
  for (int64_t i = 0; i < count; ++i) {
    double number = PyFloat_AS_DOUBLE(list ? PyList_GET_ITEM(object, i) : object);
    if (declared->dtype == kFloat32) store<float>(value->buffer->data, static_cast<size_t>(i), number);
    else store<double>(value->buffer->data, static_cast<size_t>(i), number);
  }
  *out = std::move(value);
  return true;
}

bool feed(PyObject* object, Type* declared, ValueRef* out) {
  if (is_tensor(object)) {
    if (!observe(reinterpret_cast<PyTensor*>(object), "a feed")) return false;
    *out = share(reinterpret_cast<PyTensor*>(object)->value);
    return true;
  }
  if (quick_feed(object, declared, out)) return true;
  PyObject* type = python_type(declared);
  PyObject* array = type ? PyObject_CallFunctionObjArgs(hooks.feed_array, object, type, nullptr) : nullptr;
  if (!array) return false;
  *out = value_from_array(array, true, declared->dtype == kBFloat16 ? static_cast<int>(kBFloat16) : -1);
  Py_DECREF(array);
  return static_cast<bool>(*out);
}

// Whether nothing else has the memory of a value: neither a variable or constant, nor what was fed, nor another result.
bool is_alone(const Value* value) {
  const Buffer* buffer = value->buffer.get();
  return value->references == 1 && buffer->references == 1 && !buffer->whole && !buffer->owner;
}

// An array that the caller may write to.
PyObject* as_fetch(ValueRef value) {
  const bool alone = is_alone(value.get());
  PyObject* handle = wrap(std::move(value));
  if (!handle) return nullptr;
  auto* tensor = reinterpret_cast<PyTensor*>(handle);
  PyObject* array;
  if (tensor->value->type->dtype == kBFloat16) {
    array = PyObject_CallFunctionObjArgs(hooks.wide_array, handle, nullptr);
  } else {
    array = array_of(tensor, !alone || tensor->value->type->nbytes <= 256);
  }
  Py_DECREF(handle);
  return array ? PyArray_Return(reinterpret_cast<PyArrayObject*>(array)) : nullptr;
}

// fetch(feeds) -> (arrays, tensors): the first `count` outputs as NumPy values, the rest as tensors
PyObject* fetch(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  auto* function = reinterpret_cast<PyFunction*>(self);
  Graph& graph = *function->graph;
  if (count != 2 || !PyTuple_Check(arguments[0]) || PyTuple_GET_SIZE(arguments[0]) != static_cast<Py_ssize_t>(graph.inputs.size())) {
    return PyErr_Format(PyExc_TypeError, "fetch takes a tuple of %zu feeds and the number of arrays", graph.inputs.size());
  }
  Py_ssize_t arrays = PyLong_AsSsize_t(arguments[1]);
  if (arrays < 0) return nullptr;
  std::vector<ValueRef> inputs(graph.inputs.size()), outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!feed(PyTuple_GET_ITEM(arguments[0], static_cast<Py_ssize_t>(i)), graph.inputs[i]->type, &inputs[i])) return nullptr;
  }
  if (!run(function, inputs, outputs)) return nullptr;
  PyObject* result = PyList_New(static_cast<Py_ssize_t>(outputs.size()));
  for (size_t i = 0; result && i < outputs.size(); ++i) {
    PyObject* item = static_cast<Py_ssize_t>(i) < arrays ? as_fetch(std::move(outputs[i])) : wrap(std::move(outputs[i]));
    if (!item) {
      Py_DECREF(result);
      return nullptr;
    }
    PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), item);
  }
  return result;
}

// prepare(types): compiles ahead of time for inputs of these types
PyObject* prepare(PyObject* self, PyObject* tuple) {
  auto* function = reinterpret_cast<PyFunction*>(self);
  const size_t count = function->graph->inputs.size();
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != static_cast<Py_ssize_t>(count)) {
    return PyErr_Format(PyExc_TypeError, "prepare takes a tuple of %zu types", count);
  }
  std::vector<Type*> types;
  for (size_t i = 0; i < count; ++i) {
    types.push_back(type_from_python(PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i))));
    if (!types.back()) return nullptr;
  }
  std::shared_ptr<Specialisation> s = specialisation_of(function, [&types](size_t i) { return types[i]; });
  if (!s) return nullptr;
  Interrupts interrupts;
  if (s->executable && !s->executable->prepare(s->run_provenance(), interrupts)) return nullptr;
  Py_RETURN_NONE;
}

// `check` is often a method of what holds the function. That lets go of it in a cycle: what is called is never null.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PyFunction*>(self)->check);
  return 0;
}

void dealloc(PyObject* self) {
  auto* function = reinterpret_cast<PyFunction*>(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  std::erase(living_graphs(), function->graph);
  for (const auto& known : function->graph->specialisations) {
    account.bytes -= std::min(account.bytes, known->memory());
    --account.count;
  }
  delete function->graph;
  Py_XDECREF(function->check);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyMethodDef methods[] = {
    {"fetch", method<fetch>(), METH_FASTCALL,
     "fetch(feeds, arrays) -> outputs; the first `arrays` of them as NumPy values"},
    {"prepare", guarded<prepare>, METH_O, "prepare(types): compiles for inputs of these types, before any are there."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, slot<dealloc>()},
    {Py_tp_traverse, slot<traverse>()},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, nullptr},
};

// function(inputs, outputs, single, check) -> callable
PyObject* make_function(PyObject*, PyObject* arguments) {
  PyObject *inputs, *outputs, *check;
  int single;
  if (!PyArg_ParseTuple(arguments, "O!O!pO", &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &single, &check)) return nullptr;
  auto graph = std::make_unique<Graph>();
  if (!values_of(inputs, graph->inputs) || !values_of(outputs, graph->outputs)) return nullptr;
  graph->single = single;
  auto* made = reinterpret_cast<PyFunction*>(function_type->tp_alloc(function_type, 0));
  if (!made) return nullptr;
  made->vectorcall = guarded<call>;
  made->graph = graph.release();
  living_graphs().push_back(made->graph);
  made->check = check;
  Py_INCREF(check);
  return reinterpret_cast<PyObject*>(made);
}

// placeholder(type) -> tensor
PyObject* placeholder(PyObject*, PyObject* object) {
  Type* type = type_from_python(object);
  return type ? wrap(declare_placeholder(type)) : nullptr;
}

// set_type(declared, type): later declarations see it with another type
PyObject* set_type(PyObject*, PyObject* arguments) {
  PyObject *object, *given;
  if (!PyArg_ParseTuple(arguments, "O!O", tensor_type, &object, &given)) return nullptr;
  Type* type = type_from_python(given);
  if (!type) return nullptr;
  Value* value = reinterpret_cast<PyTensor*>(object)->value;
  if (!is_symbolic(value)) return PyErr_Format(PyExc_TypeError, "expected a declared tensor");
  value->type = type;
  Py_RETURN_NONE;
}

// gradients(root, seed or None, targets) -> list of tensors
PyObject* gradients(PyObject*, PyObject* arguments) {
  static uint64_t groups = 0;
  PyObject *root, *seed, *targets;
  if (!PyArg_ParseTuple(arguments, "O!OO!", tensor_type, &root, &seed, &PyTuple_Type, &targets)) return nullptr;
  std::vector<ValueRef> values;
  if (!values_of(targets, values)) return nullptr;
  Value* seed_value = seed == Py_None ? nullptr : reinterpret_cast<PyTensor*>(seed)->value;
  ++groups;
  PyObject* result = PyList_New(static_cast<Py_ssize_t>(values.size()));
  for (size_t i = 0; result && i < values.size(); ++i) {
    PyObject* gradient = wrap(declare_gradient(reinterpret_cast<PyTensor*>(root)->value, seed_value, values[i].get(), groups));
    if (gradient) PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), gradient);
    else Py_CLEAR(result);
  }
  return result;
}

// inputs_of(tensor) -> (op or None, attrs, inputs), for traversals of a declared graph
PyObject* inputs_of(PyObject*, PyObject* object) {
  if (!is_tensor(object)) return PyErr_Format(PyExc_TypeError, "expected a tensor");
  const Declared* declared = reinterpret_cast<PyTensor*>(object)->value->declared.get();
  if (!declared) Py_RETURN_NONE;
  const Owned inputs(PyList_New(0));
  for (size_t k = 0; inputs && k < declared->inputs.size(); ++k) {
    const Leaf& leaf = declared->inputs[k];
    const Owned item(leaf.value ? wrap(leaf.value) : scalar_object(declared->is_gradient ? nullptr : declared->input_types[k], leaf.scalar));
    if (!item || PyList_Append(inputs.object, item.object) < 0) return nullptr;
  }
  if (!inputs) return nullptr;
  return Py_BuildValue("OOOi", declared->operation ? declared->operation->python : Py_None,
                       declared->attributes ? declared->attributes->tuple : Py_None, inputs.object, declared->is_gradient ? 1 : 0);
}

// value_key(tensor) -> int that is equal for handles of one declared value
PyObject* value_key(PyObject*, PyObject* object) {
  return PyLong_FromVoidPtr(reinterpret_cast<PyTensor*>(object)->value);
}

// declare(op, attrs, inputs) -> tensor that is declared, not run, even if all its inputs are bound
PyObject* declare(PyObject*, PyObject* arguments) {
  PyObject *op, *attrs, *inputs;
  if (!PyArg_ParseTuple(arguments, "OO!O!", &op, &PyTuple_Type, &attrs, &PyTuple_Type, &inputs)) return nullptr;
  Operation* operation = operation_of(op);
  const AttributesRef attributes = operation ? attributes_of(attrs) : nullptr;
  if (!attributes) return nullptr;
  std::vector<ValueRef> values;
  if (!values_of(inputs, values)) return nullptr;
  std::vector<Operand> operands(values.size());
  for (size_t i = 0; i < values.size(); ++i) operands[i].value = values[i].get();
  return wrap(declare_call(operation, attributes, operands.data(), operands.size(), nullptr, true));
}

// declare_at(tensor or location) -> the location before; later declarations have the location of the tensor
PyObject* declare_at(PyObject*, PyObject* object) {
  unsigned long location = is_tensor(object) ? reinterpret_cast<PyTensor*>(object)->value->location : PyLong_AsUnsignedLong(object);
  if (PyErr_Occurred()) return nullptr;
  return PyLong_FromUnsignedLong(declare_at_location(static_cast<uint32_t>(location)));
}

// on_declaration(callable): called with every tensor that a call on symbolic tensors declares
PyObject* on_declaration(PyObject*, PyObject* object) {
  PyObject* before = declaration_listener;
  Py_INCREF(object);
  declaration_listener = object;
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"declare", guarded<declare>, METH_VARARGS, "declare(op, attrs, inputs): a declared call, even of bound tensors."},
    {"declare_at", guarded<declare_at>, METH_O, "declare_at(tensor or location): place declarations there; returns the location so far."},
    {"on_declaration", guarded<on_declaration>, METH_O, "on_declaration(callable): called with every tensor that a call declares."},
    {"function", guarded<make_function>, METH_VARARGS, "function(inputs, outputs, single, check): a declared graph as a callable."},
    {"placeholder", guarded<placeholder>, METH_O, "placeholder(type): a value to be bound later."},
    {"set_type", guarded<set_type>, METH_VARARGS, "set_type(declared, type): take it to be of another type from now on."},
    {"gradients", guarded<gradients>, METH_VARARGS, "gradients(root, seed, targets): declared gradients."},
    {"inputs_of", guarded<inputs_of>, METH_O, "inputs_of(tensor): (op, attrs, inputs, is_gradient) of a declared value, or None."},
    {"value_key", guarded<value_key>, METH_O, "value_key(tensor): an integer equal for handles of one value."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* scalar_object(const Type* type, uint64_t bits) {
  if (type->dtype == kBool) return PyBool_FromLong(bits != 0);
  if (is_floating(type->dtype)) {
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return PyFloat_FromDouble(number);
  }
  int64_t number;
  std::memcpy(&number, &bits, sizeof number);
  return PyLong_FromLongLong(number);
}

int add_function_type(PyObject* module) {
  PyType_Spec spec = {"twofold._core.Function", sizeof(PyFunction), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return -1;
  function_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace twofold
