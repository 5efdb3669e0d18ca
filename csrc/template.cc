#include "template.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "arena.h"
#include "cache.h"
#include "owned.h"

namespace twofold {

Templates template_mode = Templates::kSecondSize;

namespace {

using Values = std::vector<int64_t>;

TemplateCounts counts{};

constexpr size_t kAskedForKept = 4;  // members of a family without a saved plan, after which Python is asked no more

struct Family {
  uint64_t used = 0;  // when, see Cache
  Values first;
  size_t not_kept = 0;  // members for which Python had no saved plan
  std::vector<bool> varies;  // by position: whether it was seen to vary
  Plans<std::shared_ptr<Template>> plans;

  size_t memory() const {
    size_t total = sizeof *this + memory_of(first);
    for (const auto& plan : plans.list) total += plan->memory();
    return total;
  }
};

auto& families = *new Cache<Family>("templates", 2);
const bool holds = (add_holder([] { return families.drop_oldest(); }), true);

std::string family_key(const Operation* op, const Attributes* attributes, Type* const* inputs, size_t count) {
  std::string key;
  auto append = [&key](const void* data, size_t size) { key.append(static_cast<const char*>(data), size); };
  append(&op->id, sizeof op->id);
  const size_t length = attributes->skeleton.size();
  append(&length, sizeof length);
  key += attributes->skeleton;
  for (size_t i = 0; i < count; ++i) {
    const auto rank = static_cast<uint16_t>(inputs[i]->shape.size());
    key.push_back(static_cast<char>(inputs[i]->dtype));
    key.push_back(static_cast<char>(inputs[i]->weak));
    append(&rank, sizeof rank);
  }
  return key;
}

Values values_of(const Attributes* attributes, Type* const* inputs, size_t count) {
  Values values = attributes->numbers;
  for (size_t i = 0; i < count; ++i) values.insert(values.end(), inputs[i]->shape.begin(), inputs[i]->shape.end());
  return values;
}

// The mask of integers that vary; the first ones do not.
std::vector<bool> varying(const Values& values, size_t fixed) {
  std::vector<bool> varies(values.size(), true);
  std::fill_n(varies.begin(), fixed, false);
  return varies;
}

bool fits(const Template& plan, const Values& values, Values& shape) {
  for (auto [position, value] : plan.fixed) {
    if (values[position] != value) return false;
  }
  return plan.result.run(values.data(), shape);
}

OpInstanceRef member(const std::shared_ptr<Template>& plan, Operation* op, Attributes* attributes, Type* const* inputs, size_t count,
                  std::shared_ptr<const Values> values, const int64_t* shape, size_t numbers) {
  auto traits = std::make_unique<Traits>(plan->traits);
  if (traits->movement) {
    traits->movement->step = shape[--numbers];
    traits->movement->offset = shape[--numbers];
  }
  Type* output = type_of(plan->dtype, shape, numbers);
  OpInstanceRef made = insert_op_instance(op, attributes, inputs, count);  // no allocation from here on, which could fail halfway
  const size_t before = made->memory();
  made->output = output;
  made->differentiable = plan->differentiable;
  made->traits = std::move(traits);
  made->plan = plan;
  made->values = std::move(values);
  charge_op_instances(static_cast<int64_t>(made->memory() - before));
  ++counts.uses;
  return made;
}

// Asks Python for a template over the integers that vary, or for a saved one; null, with a Python error set only
// if it is not an error of planning.
std::shared_ptr<Template> make_template(const std::vector<bool>& varies, bool kept, Operation* op, Attributes* attributes, Type* const* inputs,
                                        size_t count, const Values& values) {
  Owned types(types_tuple(inputs, count));
  Owned mask(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!types || !mask) return nullptr;
  for (size_t k = 0; k < values.size(); ++k) {
    PyTuple_SET_ITEM(mask.object, static_cast<Py_ssize_t>(k), Py_NewRef(varies[k] ? Py_True : Py_False));
  }
  PyObject* const at_once = kept || template_mode >= Templates::kAtOnce ? Py_True : Py_False;
  Owned found(PyObject_CallFunctionObjArgs(hooks.template_of, op->python, attributes->tuple, types.object, mask.object, at_once,
                                           kept ? Py_True : Py_False, nullptr));
  if (!found || found.object == Py_None) return nullptr;
  PyObject *python, *result, *defers, *checks, *movement;
  int dtype, differentiable;
  if (!PyArg_ParseTuple(found.object, "OOipOOO", &python, &result, &dtype, &differentiable, &defers, &checks, &movement)) return nullptr;
  auto plan = std::make_shared<Template>(Py_NewRef(python));
  if (!plan->result.read(result) || !plan->traits.read(defers, checks, movement)) return nullptr;
  plan->kept = kept;
  plan->dtype = static_cast<uint8_t>(dtype);
  plan->differentiable = differentiable && is_differentiable(plan->dtype);
  for (size_t k = 0; k < values.size(); ++k) {
    if (!varies[k]) plan->fixed.emplace_back(static_cast<uint32_t>(k), values[k]);
  }
  return plan;
}

// A saved template for all sizes: with these attributes, or with any integers in them.
std::shared_ptr<Template> kept_template(Operation* op, Attributes* attributes, Type* const* inputs, size_t count, const Values& values) {
  const size_t own = attributes->numbers.size();
  std::shared_ptr<Template> plan;
  if (own < values.size()) plan = make_template(varying(values, own), true, op, attributes, inputs, count, values);
  if (!plan && own > 0 && !PyErr_Occurred()) plan = make_template(varying(values, 0), true, op, attributes, inputs, count, values);
  return plan;
}

}  // namespace

PyObject* with_numbers(PyObject* value, const int64_t*& next) {
  if (PyTuple_Check(value)) {
    PyObject* made = PyTuple_New(PyTuple_GET_SIZE(value));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(value); ++i) {
      PyObject* item = with_numbers(PyTuple_GET_ITEM(value, i), next);
      if (!item) Py_CLEAR(made);
      else PyTuple_SET_ITEM(made, i, item);
    }
    if (made && !PyTuple_CheckExact(value) && PyObject_HasAttrString(value, "_fields")) {  // a named tuple
      PyObject* named = PyObject_CallObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), made);
      Py_DECREF(made);
      return named;
    }
    return made;
  }
  if (PyLong_Check(value) && !PyBool_Check(value)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) return PyLong_FromLongLong(*next++);
  }
  return Py_NewRef(value);
}

namespace {

bool read_piece(GradientTemplate& gradients, PyObject* item) {
  PyObject *op, *attributes, *used, *python, *defers, *checks, *movement, *form;
  int dtype;
  Py_ssize_t index, numbers;
  if (!PyArg_ParseTuple(item, "nOOinOOOOOO", &index, &op, &attributes, &dtype, &numbers, &used, &python, &defers, &checks, &movement,
                        &form)) {
    return false;
  }
  GradientTemplate::Piece piece;
  piece.operation = operation_of(op);
  if (!piece.operation || !piece.form.read(form) || !read_slots(used, piece.used)) return false;
  piece.index = static_cast<size_t>(index);
  piece.numbers = static_cast<size_t>(numbers);
  piece.attributes = std::shared_ptr<PyObject>(Py_NewRef(attributes), [](PyObject* tuple) { Py_DECREF(tuple); });
  piece.made = std::make_shared<Template>(Py_NewRef(python));
  piece.made->dtype = static_cast<uint8_t>(dtype);
  piece.made->differentiable = is_differentiable(piece.made->dtype);
  if (!piece.made->traits.read(defers, checks, movement)) return false;
  gradients.pieces.push_back(std::move(piece));
  return true;
}

bool read_gradients(GradientTemplate& gradients, PyObject* found) {
  PyObject *numbers, *pieces;
  if (!PyArg_ParseTuple(found, "OO!", &numbers, &PyList_Type, &pieces) || !gradients.numbers.read(numbers)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pieces); ++i) {
    if (!read_piece(gradients, PyList_GET_ITEM(pieces, i))) return false;
  }
  return true;
}

}  // namespace

OpInstanceRef op_instance_by_template(Operation* op, Attributes* attributes, Type* const* inputs, size_t count) {
  if (template_mode == Templates::kOff || !hooks.template_of || attributes->symbolic) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i]->unknown) return nullptr;
  }
  auto values = std::make_shared<const Values>(values_of(attributes, inputs, count));
  if (values->empty()) return nullptr;
  std::string key = family_key(op, attributes, inputs, count);
  std::shared_ptr<Family> family = families.find(key);
  const bool first = !family;
  if (first) {
    family = std::make_shared<Family>();
    family->first = *values;
    family->varies.assign(values->size(), false);
    families.insert(std::move(key), family);
    families.bound();
    ++counts.families;
  }
  Values shape;
  auto& plans = family->plans;
  const auto fitting = [&](const std::shared_ptr<Template>& plan) { return fits(*plan, *values, shape) ? plan : nullptr; };
  if (const std::shared_ptr<Template> found = plans.find(fitting)) {
    return member(found, op, attributes, inputs, count, std::move(values), shape.data(), shape.size());
  }
  std::shared_ptr<Template> plan;
  if (template_mode == Templates::kSecondSize) {
    if (family->not_kept < kAskedForKept) plan = kept_template(op, attributes, inputs, count, *values);
    if (!plan) ++family->not_kept;
    if (!plan && (first || PyErr_Occurred())) return nullptr;
    for (size_t k = 0; k < values->size(); ++k) family->varies[k] = family->varies[k] || (*values)[k] != family->first[k];
  }
  if (!plan) {
    if (!plans.may_add()) return nullptr;
    ++plans.attempts;
    const std::vector<bool> varies = template_mode == Templates::kAtOnce        ? varying(*values, 0)
                                     : template_mode == Templates::kSizesAtOnce ? varying(*values, attributes->numbers.size())
                                                                                : family->varies;  // Python may re-enter meanwhile
    plan = make_template(varies, false, op, attributes, inputs, count, *values);
  }
  ++(plan ? counts.made : counts.refused);
  if (!plan || !fits(*plan, *values, shape)) return nullptr;
  plans.add(plan);
  families.charge(static_cast<ptrdiff_t>(plan->memory()));
  families.bound();
  if (OpInstanceRef found = find_op_instance(op, attributes, inputs, count)) return found;
  return member(plan, op, attributes, inputs, count, std::move(values), shape.data(), shape.size());
}

namespace {

// The template of gradients whose guards hold for an op instance, and its integers; null if there is none.
std::shared_ptr<const GradientTemplate> gradients_for(OpInstance* instance, uint64_t wanted, PyObject* inputs, Values& numbers) {
  const Template& plan = *instance->plan;
  auto& plans = instance->plan->gradients[wanted];
  const auto holding = [&](const auto& known) { return known->numbers.run(instance->values->data(), numbers) ? known : nullptr; };
  if (auto found = plans.find(holding)) return found;
  if (!plans.may_add()) return nullptr;
  ++plans.attempts;
  Owned values(integer_tuple(*instance->values));
  if (!values) return nullptr;
  PyObject* const make_none = plan.kept && plans.attempts == 1 ? Py_True : Py_False;
  Owned found(PyObject_CallFunctionObjArgs(hooks.template_gradients, plan.python, inputs, values.object, make_none, nullptr));
  auto made = std::make_shared<GradientTemplate>();
  if (!found || found.object == Py_None || !read_gradients(*made, found.object)) return nullptr;
  for (const auto& piece : made->pieces) piece.made->kept = plan.kept;
  instance->plan->gradients[wanted].add(made);
  for (const auto& piece : made->pieces) families.charge(piece.made->memory());
  families.bound();
  return made->numbers.run(instance->values->data(), numbers) ? made : nullptr;
}

}  // namespace

bool gradients_by_template(GradientPlan& plan, OpInstance* instance, PyObject* wanted) {
  Values numbers;
  std::shared_ptr<const GradientTemplate> held = gradients_for(instance, plan.wanted, wanted, numbers);
  if (!held) return false;
  const int64_t* next = numbers.data();
  for (const auto& piece : held->pieces) {
    const int64_t* end = next + piece.numbers;
    Owned tuple(with_numbers(piece.attributes.get(), next));
    const AttributesRef attributes = tuple ? attributes_of(tuple.object) : nullptr;
    if (!attributes) return false;
    const std::vector<Type*> inputs = types_read(plan, instance, piece.used);
    OpInstanceRef made = find_op_instance(piece.operation, attributes, inputs.data(), inputs.size());
    if (!made) {
      made = member(piece.made, piece.operation, attributes, inputs.data(), inputs.size(), instance->values, next,
                    static_cast<size_t>(end - next));
    }
    next = end;
    add_gradient(plan, instance->inputs.size(), piece.index, std::move(made), piece.used, piece.form);
  }
  return true;
}

ProgramRef program_by_template(OpInstance* instance) {
  std::shared_ptr<Template> plan = instance->plan;
  auto& plans = plan->programs;
  const Values& values = *instance->values;
  const auto instantiated = [&](const std::shared_ptr<const ProgramTemplate>& known) { return known->instantiate(values.data()); };
  if (ProgramRef found = plans.find(instantiated)) return found;
  if (!plans.may_add()) return nullptr;
  ++plans.attempts;
  Owned numbers(integer_tuple(values));
  if (!numbers) return nullptr;
  PyObject* const make_none = plan->kept && plans.attempts == 1 ? Py_True : Py_False;
  Owned found(PyObject_CallFunctionObjArgs(hooks.template_program, plan->python, numbers.object, make_none, nullptr));
  auto made = std::make_shared<ProgramTemplate>();
  if (!found || found.object == Py_None || !made->read(found.object)) return nullptr;
  ++counts.programs;
  ProgramRef program = made->instantiate(values.data());
  families.charge(made->memory());
  plan->programs.add(std::move(made));
  families.bound();
  return program;
}

TemplateCounts template_counts() { return counts; }

namespace {

// Calls a function with integers; a new reference, null if it raises.
PyObject* host_function(PyObject* maker, const int64_t* numbers, size_t count) {
  Owned arguments(integer_tuple(std::span(numbers, count)));
  PyObject* made = arguments ? PyObject_CallObject(maker, arguments.object) : nullptr;
  if (made) return made;
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // it will be raised again where it can be caught
  PyErr_Clear();
  return nullptr;
}

}  // namespace

size_t ProgramSteps::memory() const {
  size_t total = sizeof *this + memory_of(steps_) + memory_of(slots_);
  for (const Step& step : steps_) {
    if (!step.inside) continue;
    for (const ProgramSteps& program : step.inside->programs) total += program.memory();
  }
  return total;
}

size_t Template::memory() const {
  constexpr size_t kInPython = 16384;  // approximate bytes of graph and symbols
  size_t total = kInPython + sizeof *this + result.memory() + memory_of(fixed);
  for (const auto& program : programs.list) total += program->memory();
  for (const auto& [wanted, plans] : gradients) {
    for (const auto& list : plans.list) {
      total += list->numbers.memory();
      for (const auto& piece : list->pieces) total += piece.made->memory();
    }
  }
  return total;
}

bool ProgramSteps::read_inside(PyObject* encoded, Step& step) {
  PyObject *programs, *labels, *form;
  if (!PyArg_ParseTuple(encoded, "O!O!O", &PyList_Type, &programs, &PyList_Type, &labels, &form)) return false;
  auto made = std::make_shared<Inside>();
  made->programs.resize(static_cast<size_t>(PyList_GET_SIZE(programs)));
  for (size_t k = 0; k < made->programs.size(); ++k) {
    const auto position = static_cast<Py_ssize_t>(k);
    if (!made->programs[k].read(PyList_GET_ITEM(programs, position))) return false;
    made->first_labels.push_back(static_cast<int32_t>(PyLong_AsLong(PyList_GetItem(labels, position))));
  }
  if (PyErr_Occurred() || !made->form.read(form)) return false;
  step.inside = std::move(made);
  return true;
}

// Reads (function from integers to a host function, their count).
bool ProgramSteps::read_host(PyObject* encoded, Step& step) {
  PyObject* maker;
  Py_ssize_t numbers;
  if (!PyArg_ParseTuple(encoded, "On", &maker, &numbers)) return false;
  step.host = std::shared_ptr<PyObject>(Py_NewRef(maker), [](PyObject* object) { Py_DECREF(object); });
  step.host_numbers = static_cast<size_t>(numbers);
  return true;
}

bool ProgramSteps::read_step(PyObject* item) {
  PyObject *kernel, *buffers, *inside;
  Step made{};
  if (!PyArg_ParseTuple(item, "OOIiO", &kernel, &buffers, &made.params, &made.label, &inside)) return false;
  if (inside != Py_None && !(PyTuple_Check(inside) && PyTuple_GET_SIZE(inside) == 2 ? read_host(inside, made) : read_inside(inside, made))) return false;
  made.kernel = reinterpret_cast<Kernel>(PyLong_AsUnsignedLongLong(kernel));
  if (PyErr_Occurred()) return false;
  code_->add(kernel);
  made.first_slot = static_cast<uint32_t>(slots_.size());
  made.slots = static_cast<uint32_t>(PyTuple_GET_SIZE(buffers));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(buffers); ++i) {
    int kind;
    long long number;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(buffers, i), "iL", &kind, &number)) return false;
    slots_.push_back(BufferSlot{static_cast<uint8_t>(kind), number});
  }
  steps_.push_back(std::move(made));
  return true;
}

bool ProgramSteps::read(PyObject* encoded) {
  PyObject *steps, *donations;
  Py_ssize_t outputs, buffers;
  long long further_work;
  int tells_finite;
  if (!PyArg_ParseTuple(encoded, "O!nnO!Lp", &PyList_Type, &steps, &outputs, &buffers, &PyList_Type, &donations, &further_work, &tells_finite)) {
    return false;
  }
  outputs_ = static_cast<size_t>(outputs);
  buffers_ = static_cast<size_t>(buffers);
  further_work_ = further_work;
  tells_finite_ = tells_finite;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(steps); ++i) {
    if (!read_step(PyList_GET_ITEM(steps, i))) return false;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(donations); ++i) {
    int source, target;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(donations, i), "ii", &source, &target)) return false;
    donations_.emplace_back(source, target);
  }
  return true;
}

ProgramRef ProgramSteps::with_numbers(const int64_t*& next) const {
  auto program = std::make_shared<Program>();
  program->code = code_;
  program->slots = slots_;
  program->donations = donations_;
  program->total_work = further_work_;
  program->tells_finite = tells_finite_;
  program->instructions.reserve(steps_.size());
  std::vector<std::pair<int64_t, int64_t>> scratch;  // buffers, with their sizes
  for (const Step& step : steps_) {
    Instruction made{};
    made.kernel = step.kernel;
    made.first_slot = step.first_slot;
    made.slots = step.slots;
    made.first_param = static_cast<uint32_t>(program->params.size());
    program->params.insert(program->params.end(), next, next + step.params);
    next += step.params;
    made.work = *next++;
    made.grain = std::max<int64_t>(1, *next++);
    made.label = step.label;
    if (step.inside) {
      const Inside& inside = *step.inside;
      std::vector<Part> parts;
      for (size_t k = 0; k < inside.programs.size(); ++k) {
        parts.push_back(Part{inside.programs[k].with_numbers(next), inside.first_labels[k]});
        if (!parts.back().program) return nullptr;
      }
      program->nested.push_back(inside.form.made(std::move(parts), next));
      next += inside.form.numbers();
      made.nested = program->nested.back().get();
      program->has_host |= made.nested->has_host();
      scratch.emplace_back(slots_[step.first_slot + step.slots - 1].index, made.nested->scratch_bytes());
    }
    if (step.host) {
      made.host = host_function(step.host.get(), next, step.host_numbers);
      if (!made.host) return nullptr;
      next += step.host_numbers;
      program->has_host = true;
    }
    program->instructions.push_back(made);
  }
  program->output_nbytes.assign(next, next + outputs_);
  next += outputs_;
  std::vector<int64_t> buffer_sizes(next, next + buffers_);
  next += buffers_;
  for (auto [buffer, size] : scratch) buffer_sizes[static_cast<size_t>(buffer)] = size;
  program->settle(buffer_sizes, true);
  return program;
}

bool ProgramTemplate::read(PyObject* encoded) {
  PyObject *sizes, *steps;
  return PyArg_ParseTuple(encoded, "OO", &sizes, &steps) && steps_.read(steps) && sizes_.read(sizes);
}

ProgramRef ProgramTemplate::instantiate(const int64_t* values) const {
  Values numbers;
  if (!sizes_.run(values, numbers)) return nullptr;
  const int64_t* next = numbers.data();
  return steps_.with_numbers(next);
}

}  // namespace twofold
