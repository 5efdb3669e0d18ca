#include <Python.h>

#include "op_instance.h"

#include "batch_program.h"
#include "cache.h"
#include "trace.h"
#include "executable.h"
#include "owned.h"
#include "template.h"
#include "tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

namespace twofold {

Hooks hooks;

namespace {

void append(std::string& out, const void* data, size_t size) { out.append(static_cast<const char*>(data), size); }

constexpr size_t kNumberBytes = sizeof(long long);

// Serialises by value: 1, 1.0 and True differ, as do 0.0 and -0.0. `numbers` gets the offsets of integers in `out`,
// `symbolic` is set where there is a symbol.
bool serialise(PyObject* value, std::string& out, std::vector<size_t>& numbers, bool& symbolic) {
  if (value == Py_None) {
    out += 'n';
  } else if (PyBool_Check(value)) {
    out += value == Py_True ? 't' : 'f';
  } else if (PyLong_Check(value)) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) {
      Owned text(PyObject_Str(value));
      if (!text) return false;
      out += 'I';
      out += PyUnicode_AsUTF8(text.object);
      out += '\0';
    } else {
      out += 'i';
      numbers.push_back(out.size());
      append(out, &number, sizeof number);
    }
  } else if (PyFloat_Check(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    out += 'd';
    append(out, &number, sizeof number);
  } else if (PyComplex_Check(value)) {
    const double parts[2] = {PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)};
    out += 'c';
    append(out, parts, sizeof parts);
  } else if (PyUnicode_Check(value)) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text) return false;
    out += 's';
    append(out, &size, sizeof size);
    out.append(text, static_cast<size_t>(size));
  } else if (PyTuple_Check(value)) {
    Py_ssize_t size = PyTuple_GET_SIZE(value);
    out += '(';
    append(out, &size, sizeof size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (!serialise(PyTuple_GET_ITEM(value, i), out, numbers, symbolic)) return false;
    }
  } else if (PyObject_HasAttrString(value, "code") && PyObject_HasAttrString(value, "itemsize")) {
    Owned name(PyObject_GetAttrString(value, "name"));
    const char* text = name ? PyUnicode_AsUTF8(name.object) : nullptr;
    if (!text) return false;
    out += 'D';
    out += text;
    out += '\0';
  } else if (PyObject_HasAttrString(value, "content_key")) {
    // Objects with the same content key are equal, in every process.
    Owned words(PyObject_GetAttrString(value, "content_key"));
    Py_ssize_t size;
    const char* text = words ? PyUnicode_AsUTF8AndSize(words.object, &size) : nullptr;
    if (!text) return false;
    symbolic = symbolic || reinterpret_cast<PyObject*>(Py_TYPE(value)) == hooks.symbol_class;
    out += 'k';
    append(out, &size, sizeof size);
    out.append(text, static_cast<size_t>(size));
  } else if (is_tensor(value)) {
    PyErr_SetString(PyExc_TypeError, "a tensor stands where a number, a word or a sequence of them belongs");
    return false;
  } else {
    // Kept alive by the attributes, so the address is unique.
    out += 'o';
    append(out, &value, sizeof value);
  }
  return true;
}

// Serialises attributes without their integers.
std::string skeleton_of(const std::string& bytes, const std::vector<size_t>& numbers) {
  std::string rest;
  size_t from = 0;
  for (size_t position : numbers) {
    rest.append(bytes, from, position - from);
    from = position + kNumberBytes;
  }
  rest.append(bytes, from);
  return rest;
}

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v;
  h *= 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}

uint64_t hash_key(Operation* op, Attributes* attributes, Type* const* inputs, size_t count) {
  uint64_t h = mix(op->id + 1, attributes->id);
  for (size_t i = 0; i < count; ++i) h = mix(h, inputs[i]->id);
  return h;
}

// Open addressing, power-of-two size.
struct Memo {
  std::vector<OpInstance*> slots = std::vector<OpInstance*>(1024, nullptr);
  size_t count = 0;

  OpInstance** find(uint64_t hash, Operation* op, Attributes* attributes, Type* const* inputs, size_t n) {
    size_t mask = slots.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      OpInstance* s = slots[i];
      if (!s) return &slots[i];
      if (s->hash == hash && s->operation == op && s->attributes == attributes && s->inputs.size() == n &&
          (n == 0 || std::memcmp(s->inputs.data(), inputs, n * sizeof(Type*)) == 0)) {
        return &slots[i];
      }
    }
  }

  void grow() {
    std::vector<OpInstance*> old(slots.size() * 2, nullptr);
    old.swap(slots);
    for (OpInstance* s : old) {
      if (s) *find(s->hash, s->operation, s->attributes, s->inputs.data(), s->inputs.size()) = s;
    }
  }
};

Memo& memo() {
  static auto& table = *new Memo();
  return table;
}

constexpr size_t kGraph = 1024;  // approximate bytes of an op instance in Python: with its graph or, if plans were found, without
constexpr size_t kMostSpare = 4096;  // unreferenced op instances that a template can make again: above this number half are evicted

CacheAccount& account = *new CacheAccount("op instances", 5);
size_t pinned = 0;  // bytes above the budget that are in use: try again when much has been added

// Whether a template can make it again.
bool is_spare(const OpInstance* s) { return s->plan && s->references == 0 && !s->program && s->gradients.empty() && s->batches.empty(); }

void free_op_instances(const std::vector<OpInstance*>& freed) {
  Memo& table = memo();
  std::vector<OpInstance*> old(table.slots.size(), nullptr);
  for (OpInstance* s : freed) s->last_use = 0;
  old.swap(table.slots);
  for (OpInstance* s : old) {
    if (s && s->last_use) *table.find(s->hash, s->operation, s->attributes, s->inputs.data(), s->inputs.size()) = s;
  }
  account.count = table.count -= freed.size();
  account.evictions += freed.size();
  for (OpInstance* s : freed) delete s;  // this may run Python, which may re-enter
}

void sort_by_use(std::vector<OpInstance*>& list) {
  std::sort(list.begin(), list.end(), [](const OpInstance* a, const OpInstance* b) { return a->last_use < b->last_use; });
}

// With sizes that are always new, most op instances never repeat, long before they fill the budget.
void drop_spare() {
  std::vector<OpInstance*> spare;
  for (OpInstance* s : memo().slots) {
    if (s && is_spare(s)) spare.push_back(s);
  }
  if (spare.size() <= kMostSpare) return;
  sort_by_use(spare);
  spare.resize(spare.size() - kMostSpare / 2);
  for (const OpInstance* s : spare) account.bytes -= std::min(account.bytes, s->memory());
  free_op_instances(spare);
}

// Evicts the least recently used unreferenced op instances, down to three quarters of the budget, and `portion` of those that could
// be evicted in any case; false if there was nothing.
bool sweep(double portion = 0) {
  Memo& table = memo();
  std::vector<OpInstance*> idle;
  account.bytes = 0;
  for (OpInstance* s : table.slots) {
    if (!s) continue;
    account.bytes += s->memory();
    if (s->references == 0) idle.push_back(s);
  }
  sort_by_use(idle);
  size_t freed = 0;
  const double least = static_cast<double>(idle.size()) * portion;
  for (; freed < idle.size() && (account.bytes > account.budget / 4 * 3 || static_cast<double>(freed) < least); ++freed) {
    account.bytes -= idle[freed]->memory();
  }
  idle.resize(freed);
  if (!freed) return false;
  free_op_instances(idle);
  return true;
}

const bool holds = (add_holder([] { return sweep(0.125); }), true);

// Op instances are held by gradients, which die with what they differentiate, and by traces.
void bound_op_instances() {
  while (sweep() && account.bytes > account.budget) {}
  while (account.bytes > account.budget && drop_oldest_of_all()) sweep();
  pinned = account.bytes + account.bytes / 4;
}

}  // namespace

PyObject* types_tuple(Type* const* inputs, size_t count) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    PyObject* type = python_type(inputs[i]);
    if (!type) {
      Py_DECREF(tuple);
      return nullptr;
    }
    Py_INCREF(type);
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), type);
  }
  return tuple;
}

OpInstance::~OpInstance() { Py_XDECREF(graph); }

size_t OpInstance::memory() const {
  constexpr size_t kAllocated = 128;  // around these pieces, and in the table
  size_t total = kAllocated + sizeof *this + memory_of(inputs) + memory_of(gradients) + (graph ? kGraph : 0) + (program ? program->memory() : 0);
  for (const auto& plan : gradients) {
    total += sizeof *plan + memory_of(plan->gradients);
    for (const Gradient& gradient : plan->gradients) total += memory_of(gradient.used) + memory_of(gradient.reads);
  }
  for (const auto& batch : batches) total += batch->memory();
  if (traits) total += sizeof *traits + (traits->movement ? memory_of(traits->movement->operands) : 0);
  return total + (values ? sizeof *values + memory_of(*values) : 0);
}

OpInstanceRef insert_op_instance(Operation* op, Attributes* attributes, Type* const* inputs, size_t count) {
  static uint32_t made = 0;
  if (account.bytes > std::max(account.budget, pinned)) bound_op_instances();
  if (++made % kMostSpare == 0) drop_spare();
  Memo& table = memo();
  if (table.count * 2 >= table.slots.size()) table.grow();
  uint64_t hash = hash_key(op, attributes, inputs, count);
  if (OpInstance* found = *table.find(hash, op, attributes, inputs, count)) return found;
  auto owned = std::make_unique<OpInstance>();
  OpInstance* s = owned.get();
  s->id = made;
  s->last_use = next_use();
  s->operation = op;
  s->attributes = attributes;
  s->inputs.assign(inputs, inputs + count);
  s->is_uniform = same_floats(count, [inputs](size_t i) { return inputs[i]; });
  s->hash = hash;
  *table.find(hash, op, attributes, inputs, count) = owned.release();
  account.count = ++table.count;
  account.bytes += s->memory();
  ++account.misses;
  return s;
}

namespace {

// Reads (graph, output TensorType, differentiable) into s.
bool fill(OpInstance* s, PyObject* result) {
  PyObject *graph, *type;
  int differentiable;
  if (!PyArg_ParseTuple(result, "OOp", &graph, &type, &differentiable)) return false;
  s->output = type_from_python(type);
  if (!s->output) return false;
  if (graph != Py_None) {
    Py_INCREF(graph);
    s->graph = graph;
  }
  s->differentiable = differentiable && is_differentiable(s->output->dtype);
  return true;
}

}  // namespace

AutocastPolicy autocast_policy(PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "lower") == 0) return AutocastPolicy::kLower;
  if (PyUnicode_CompareWithASCIIString(name, "float32") == 0) return AutocastPolicy::kFloat32;
  if (PyUnicode_CompareWithASCIIString(name, "own") == 0) return AutocastPolicy::kOwn;
  return PyUnicode_CompareWithASCIIString(name, "widest") == 0 ? AutocastPolicy::kWidest : AutocastPolicy::kNone;
}

Operation* operation_of(PyObject* op) {
  static auto& known = *new std::unordered_map<PyObject*, std::unique_ptr<Operation>>();
  auto found = known.find(op);
  if (found != known.end()) return found->second.get();
  Owned name(PyObject_GetAttrString(op, "name"));
  if (!name) return nullptr;
  Owned view(PyObject_GetAttrString(op, "is_view"));
  if (!view) return nullptr;
  Owned copies(PyObject_GetAttrString(op, "may_copy"));
  if (!copies) return nullptr;
  Owned gradient(PyObject_GetAttrString(op, "is_gradient"));
  if (!gradient) return nullptr;
  Owned views(PyObject_GetAttrString(op, "reads_views"));
  if (!views) return nullptr;
  Owned autocast(PyObject_GetAttrString(op, "autocast"));
  if (!autocast) return nullptr;
  auto made = std::make_unique<Operation>();
  Py_INCREF(op);
  made->python = op;
  made->name = PyUnicode_AsUTF8(name.object);
  made->id = static_cast<uint32_t>(known.size());
  made->is_view = PyObject_IsTrue(view.object) == 1;
  made->may_copy = PyObject_IsTrue(copies.object) == 1;
  made->is_gradient = PyObject_IsTrue(gradient.object) == 1;
  made->reads_views = PyObject_IsTrue(views.object) == 1;
  made->autocast = autocast_policy(autocast.object);
  return known.try_emplace(op, std::move(made)).first->second.get();  // unless reading the attributes has made it
}

namespace {

CacheAccount& attributes_account = *new CacheAccount("attributes", 2);
size_t attributes_pinned = 0;

std::unordered_map<std::string, std::unique_ptr<Attributes>>& known_attributes() {
  static auto& known = *new std::unordered_map<std::string, std::unique_ptr<Attributes>>();
  return known;
}

size_t memory_of_attributes(const Attributes& attributes) {
  constexpr size_t kTuple = 4;  // bytes in Python for each of these
  return sizeof attributes + attributes.bytes.size() * (2 + kTuple) + attributes.skeleton.size() + memory_of(attributes.numbers);
}

// As for op instances.
void sweep_attributes() {
  auto& known = known_attributes();
  std::vector<std::unordered_map<std::string, std::unique_ptr<Attributes>>::iterator> idle;
  for (auto item = known.begin(); item != known.end(); ++item) {
    if (item->second->references == 0) idle.push_back(item);
  }
  std::sort(idle.begin(), idle.end(), [](auto a, auto b) { return a->second->used < b->second->used; });
  std::vector<PyObject*> freed;  // this may run Python, which may re-enter
  for (auto item : idle) {
    if (attributes_account.bytes <= attributes_account.budget / 4 * 3) break;
    attributes_account.bytes -= memory_of_attributes(*item->second);
    freed.push_back(item->second->tuple);
    known.erase(item);
  }
  attributes_account.count = known.size();
  attributes_account.evictions += freed.size();
  for (PyObject* tuple : freed) Py_DECREF(tuple);
}

void bound_attributes() {
  sweep_attributes();
  while (attributes_account.bytes > attributes_account.budget && drop_oldest_of_all()) sweep_attributes();
  attributes_pinned = attributes_account.bytes + attributes_account.bytes / 4;
}

}  // namespace

AttributesRef attributes_of(PyObject* tuple) {
  static uint32_t made_so_far = 0;
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "attributes must be a tuple");
    return nullptr;
  }
  std::string bytes;
  std::vector<size_t> numbers;
  bool symbolic = false;
  if (!serialise(tuple, bytes, numbers, symbolic)) return nullptr;
  if (attributes_account.bytes > std::max(attributes_account.budget, attributes_pinned)) bound_attributes();
  auto& known = known_attributes();
  if (auto found = known.find(bytes); found != known.end()) {
    ++attributes_account.hits;
    found->second->used = next_use();
    return found->second.get();
  }
  auto made = std::make_unique<Attributes>();
  made->id = made_so_far++;
  made->used = next_use();
  made->bytes = bytes;
  made->symbolic = symbolic;
  made->skeleton = skeleton_of(bytes, numbers);
  made->skeleton_hash = hash_bytes(made->skeleton.data(), made->skeleton.size());
  for (size_t position : numbers) {
    long long number;
    std::memcpy(&number, bytes.data() + position, sizeof number);
    made->numbers.push_back(number);
  }
  Attributes* inserted = known.emplace(std::move(bytes), std::move(made)).first->second.get();
  inserted->tuple = Py_NewRef(tuple);
  ++attributes_account.misses;
  attributes_account.bytes += memory_of_attributes(*inserted);
  attributes_account.count = known.size();
  return inserted;
}

Attributes* no_attributes() {
  static auto& empty = *new AttributesRef(attributes_of(PyTuple_New(0)));
  return empty;
}

OpInstanceRef find_op_instance(Operation* op, Attributes* attributes, Type* const* inputs, size_t count) {
  OpInstance* found = *memo().find(hash_key(op, attributes, inputs, count), op, attributes, inputs, count);
  if (found) {
    found->last_use = next_use();
    ++account.hits;
  }
  return found;
}

OpInstanceRef op_instance_of(Operation* op, Attributes* attributes, Type* const* inputs, size_t count, PyObject* const* arguments) {
  if (OpInstanceRef found = find_op_instance(op, attributes, inputs, count)) return found;
  if (OpInstanceRef made = op_instance_by_template(op, attributes, inputs, count)) return made;
  if (PyErr_Occurred()) return nullptr;
  Owned types(types_tuple(inputs, count));
  if (!types) return nullptr;
  Owned operands(PyTuple_New(arguments ? static_cast<Py_ssize_t>(count) : 0));
  if (!operands) return nullptr;
  for (size_t i = 0; arguments && i < count; ++i) {
    Py_INCREF(arguments[i]);
    PyTuple_SET_ITEM(operands.object, static_cast<Py_ssize_t>(i), arguments[i]);
  }
  Owned result(PyObject_CallFunctionObjArgs(hooks.expand, op->python, attributes->tuple, types.object, operands.object, nullptr));
  if (!result) return nullptr;
  // The type rule may have added this op instance meanwhile.
  if (OpInstanceRef found = find_op_instance(op, attributes, inputs, count)) return found;
  OpInstance probe;
  if (!fill(&probe, result.object)) return nullptr;
  OpInstanceRef s = insert_op_instance(op, attributes, inputs, count);
  s->output = probe.output;
  if (!s->graph) std::swap(s->graph, probe.graph);  // that of a nested call may be in use
  account.bytes += s->graph ? kGraph : 0;
  s->differentiable = probe.differentiable;
  return s;
}

PyObject* graph_of(OpInstance* s) {
  if (s->graph) return s->graph;
  Owned types(types_tuple(s->inputs.data(), s->inputs.size()));
  Owned operands(PyTuple_New(0));
  if (!types || !operands) return nullptr;
  Owned result(PyObject_CallFunctionObjArgs(hooks.expand, s->operation->python, s->attributes->tuple, types.object, operands.object, nullptr));
  PyObject *graph, *type;
  int differentiable;
  if (!result || !PyArg_ParseTuple(result.object, "OOp", &graph, &type, &differentiable)) return nullptr;
  if (!s->graph) {
    s->graph = Py_NewRef(graph);
    account.bytes += kGraph;
  }
  return s->graph;
}

bool Traits::read(PyObject* defers_, PyObject* checks_, PyObject* moved) {
  const int deferring = PyObject_IsTrue(defers_), checking = PyObject_IsTrue(checks_);
  if (deferring < 0 || checking < 0) return false;
  defers = deferring;
  checks = checking;
  if (moved == Py_None) return true;
  PyObject* operands;
  int joins;
  Movement made;
  long long offset, step;
  if (!PyArg_ParseTuple(moved, "O!piLL", &PyTuple_Type, &operands, &joins, &made.number, &offset, &step)) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(operands); ++k) {
    made.operands.push_back(static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(operands, k))));
  }
  made.joins = joins != 0;
  made.offset = offset;
  made.step = step;
  movement = std::move(made);
  return !PyErr_Occurred();
}

const Traits* traits_of(OpInstance* instance) {
  if (!instance->traits) {
    auto made = std::make_unique<Traits>();
    if (hooks.traits_of && instance->graph) {
      const Owned found(PyObject_CallOneArg(hooks.traits_of, instance->graph));
      PyObject *defers, *checks, *movement;
      if (!found || !PyArg_ParseTuple(found.object, "OOO", &defers, &checks, &movement) || !made->read(defers, checks, movement)) {
        return nullptr;
      }
    }
    if (instance->traits) return instance->traits.get();  // another thread was first, and may be reading them now
    const size_t before = instance->memory();
    instance->traits = std::move(made);
    account.bytes += instance->memory() - before;
  }
  return instance->traits.get();
}

int is_cheap(OpInstance* instance) {
  int8_t& memo = instance->plan ? instance->plan->is_cheap : instance->is_cheap;
  if (memo < 0) {
    PyObject* call = instance->plan ? instance->plan->python : instance->graph;
    const Owned found(call && hooks.is_cheap ? PyObject_CallOneArg(hooks.is_cheap, call) : Py_NewRef(Py_False));
    const int truth = found ? PyObject_IsTrue(found.object) : -1;
    if (truth < 0) return -1;
    memo = static_cast<int8_t>(truth);
  }
  return memo;
}

namespace {

ProgramRef compiled_by_python(OpInstance* s) {
  PyObject* graph = graph_of(s);
  Owned result(graph ? PyObject_CallOneArg(hooks.compile_op_instance, graph) : nullptr);
  return result ? program_from_python(result.object) : nullptr;
}

}  // namespace

PyObject* labels_of(OpInstance* s) {
  if (!s->program->labels) {
    ProgramRef concrete = compiled_by_python(s);
    if (!concrete) return nullptr;
    if (!s->program->labels) s->program->labels = Py_XNewRef(concrete->labels);  // another thread may have been first
  }
  return s->program->labels;
}

Program* program_of(OpInstance* s) {
  if (!s->program) {
    ProgramRef made = s->plan ? program_by_template(s) : nullptr;
    if (PyErr_Occurred()) return nullptr;
    if (!made) made = compiled_by_python(s);
    if (!made) return nullptr;
    // Another thread may have been first, and may be running its program now.
    if (!s->program) {
      s->program = std::move(made);
      account.bytes += s->program->memory();
    }
  }
  return s->program.get();
}

void charge_op_instances(int64_t bytes) { account.bytes += static_cast<size_t>(std::max(bytes, -static_cast<int64_t>(account.bytes))); }

PyObject* python_type(Type* type) {
  if (!type->python) {
    Owned module(PyImport_ImportModule("twofold.ir.types"));
    if (!module) return nullptr;
    Owned shape(integer_tuple(type->shape));
    if (!shape) return nullptr;
    type->python = PyObject_CallMethod(module.object, "type_from_code", "iOO", static_cast<int>(type->dtype), shape.object,
                                       type->weak ? Py_True : Py_False);
  }
  return type->python;
}

Type* type_from_python(PyObject* object) {
  Owned dtype(PyObject_GetAttrString(object, "dtype"));
  if (!dtype) return nullptr;
  Owned code(PyObject_GetAttrString(dtype.object, "code"));
  Owned shape(PyObject_GetAttrString(object, "shape"));
  Owned weak(PyObject_GetAttrString(object, "weak"));
  if (!code || !shape || !weak) return nullptr;
  std::vector<int64_t> sizes;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.object); ++i) {
    sizes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape.object, i)));
  }
  if (PyErr_Occurred()) return nullptr;
  return type_of(static_cast<uint8_t>(PyLong_AsLong(code.object)), sizes.data(), sizes.size(), weak.object == Py_True);
}

}  // namespace twofold
