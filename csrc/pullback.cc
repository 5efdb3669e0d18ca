// The gradients of an op instance: one call for each input, and calls of common subexpressions.
#include <Python.h>

#include <algorithm>
#include <memory>

#include "owned.h"
#include "op_instance.h"
#include "template.h"
#include "trace.h"

namespace twofold {

namespace {

GradientPlan* find_plan(const OpInstance* s, uint64_t wanted) {
  for (const auto& plan : s->gradients) {
    if (plan->wanted == wanted) return plan.get();
  }
  return nullptr;
}

Gradient& grown(GradientPlan& plan, size_t index) {
  if (plan.gradients.size() <= index) plan.gradients.resize(index + 1);
  return plan.gradients[index];
}

// Reads one gradient from Python; false with a Python error set.
bool read_gradient(GradientPlan& plan, const OpInstance* s, PyObject* item) {
  Py_ssize_t index;
  PyObject* made;
  if (!PyArg_ParseTuple(item, "nO", &index, &made)) return false;
  const auto position = static_cast<size_t>(index);
  if (PyExceptionInstance_Check(made)) {
    Gradient& failed = grown(plan, position);
    failed.error.reset(Py_NewRef(made));
    return true;
  }
  PyObject *op, *attrs, *graph, *type, *slots, *written;
  Form form;
  if (!PyArg_ParseTuple(made, "OOOOOO", &op, &attrs, &graph, &type, &slots, &written) || !form.read(written)) return false;
  Operation* operation = operation_of(op);
  const AttributesRef attributes = operation ? attributes_of(attrs) : nullptr;
  std::vector<int32_t> used;
  if (!attributes || !read_slots(slots, used)) return false;
  const std::vector<Type*> inputs = types_read(plan, s, used);
  OpInstanceRef instance = find_op_instance(operation, attributes, inputs.data(), inputs.size());
  if (!instance) {
    Type* output = type_from_python(type);
    if (!output) return false;
    instance = insert_op_instance(operation, attributes, inputs.data(), inputs.size());
    instance->output = output;
    if (!instance->graph) instance->graph = Py_NewRef(graph);
    instance->differentiable = is_differentiable(output->dtype);
  }
  add_gradient(plan, s->inputs.size(), position, std::move(instance), std::move(used), form);
  return true;
}

bool fill_by_python(GradientPlan& plan, OpInstance* s, PyObject* wanted) {
  PyObject* own = graph_of(s);
  if (!own) return false;
  Owned types(types_tuple(s->inputs.data(), s->inputs.size()));
  if (!types) return false;
  Owned found(PyObject_CallFunctionObjArgs(hooks.expand_gradients, s->operation->python, s->attributes->tuple, types.object, own, wanted,
                                           nullptr));
  if (!found) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found.object); ++i) {
    if (!read_gradient(plan, s, PyList_GET_ITEM(found.object, i))) return false;
  }
  return true;
}

}  // namespace

void Gradient::Release::operator()(PyObject* object) const { Py_DECREF(object); }

bool Form::read(PyObject* tuple) { return PyArg_ParseTuple(tuple, "iiip", &kind, &left, &right, &sparse); }

bool read_slots(PyObject* tuple, std::vector<int32_t>& slots) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    slots.push_back(static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(tuple, i))));
  }
  return !PyErr_Occurred();
}

std::vector<Type*> types_read(const GradientPlan& plan, const OpInstance* s, const std::vector<int32_t>& used) {
  std::vector<Type*> types;
  for (int32_t slot : used) {
    const auto position = static_cast<size_t>(slot);
    types.push_back(slot < 0 ? s->output : position < s->inputs.size() ? s->inputs[position] : plan.gradients[position].instance->output);
  }
  return types;
}

void add_gradient(GradientPlan& plan, size_t inputs, size_t index, OpInstanceRef instance, std::vector<int32_t> used, Form form) {
  std::vector<int32_t> reads;
  for (int32_t slot : used) {
    const auto position = static_cast<size_t>(slot);
    if (slot < 0 || position < inputs) reads.push_back(slot);
    else reads.insert(reads.end(), plan.gradients[position].reads.begin(), plan.gradients[position].reads.end());
  }
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  Gradient& made = grown(plan, index);
  made.reads = std::move(reads);
  made.instance = std::move(instance);
  made.used = std::move(used);
  made.form = form;
}

const Gradient* GradientPlan::at(size_t index) const {
  static const auto& none = *new Gradient();
  if (index >= gradients.size()) return &none;
  const Gradient& found = gradients[index];
  if (!found.error) return &found;
  PyObject* error = found.error.get();
  PyException_SetTraceback(error, Py_None);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  return nullptr;
}

const GradientPlan* gradient_plan_of(OpInstance* s, uint64_t wanted) {
  if (GradientPlan* found = find_plan(s, wanted)) return found;
  auto flows_to = [&](size_t i) { return (wanted & Entry::mask_bit(i)) && is_differentiable(s->inputs[i]->dtype); };
  uint64_t flows = 0;
  for (size_t i = 0; i < s->inputs.size(); ++i) flows |= flows_to(i) ? Entry::mask_bit(i) : 0;
  if (GradientPlan* found = find_plan(s, flows)) return found;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < s->inputs.size(); ++i) {
    if (flows_to(i)) numbers.push_back(i);
  }
  auto made = std::make_unique<GradientPlan>();
  made->wanted = flows;
  if (flows && s->differentiable && !s->graph && !s->plan) {
    PyErr_Format(PyExc_RuntimeError, "%s has no gradient here: sizes of its operands are known only when the graph runs. Declare them.", s->operation->name.c_str());
    return nullptr;
  }
  if (flows && s->differentiable) {
    Owned tuple(integer_tuple(numbers));
    if (!tuple) return nullptr;
    const bool done = s->plan && gradients_by_template(*made, s, tuple.object);
    if (PyErr_Occurred() || (!done && !fill_by_python(*made, s, tuple.object))) return nullptr;
    // Python may have re-entered meanwhile.
    if (GradientPlan* found = find_plan(s, flows)) return found;
  }
  const size_t before = s->memory();
  s->gradients.push_back(std::move(made));
  charge_op_instances(static_cast<int64_t>(s->memory() - before));
  return s->gradients.back().get();
}

}  // namespace twofold
