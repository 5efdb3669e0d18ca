#include "describe.h"

#include <unordered_map>
#include <utility>

#include "declared.h"
#include "location.h"
#include "tensor.h"

namespace nb = nanobind;

namespace twofold {
namespace {

// The arguments of Python's type_from_code: no Python is called, as the interpreter may be shutting down in a compiler thread.
nb::tuple written_type(const Type* type) {
  nb::list shape;
  for (int64_t size : type->shape) shape.append(size);
  return nb::make_tuple(type->dtype, nb::tuple(shape), type->weak);
}

nb::object steal_checked(PyObject* made) {
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

thread_local PyObject* tape = nullptr;  // owned
thread_local bool stepped = false;

}  // namespace

nb::tuple describe_trace(const Trace& trace, const std::vector<Ref>& outputs) {
  nb::list leaves, entries, results;
  std::unordered_map<const OpInstance*, nb::list> types_of;
  for (const Type* type : trace.leaves) leaves.append(written_type(type));
  for (const Entry& entry : trace.entries) {
    nb::list refs;
    for (uint32_t k = 0; k < entry.count; ++k) refs.append(trace.inputs(entry)[k]);
    const OpInstance& s = *entry.instance;
    auto [types, added] = types_of.try_emplace(&s);
    for (size_t k = 0; added && k < s.inputs.size(); ++k) types->second.append(written_type(s.inputs[k]));
    nb::object graph = s.graph ? nb::borrow(s.graph) : nb::none();
    entries.append(nb::make_tuple(graph, refs, nb::borrow(s.operation->python), nb::borrow(s.attributes->tuple),
                                  entry.gradient_mask, types->second));
  }
  for (Ref ref : outputs) results.append(ref);
  return nb::make_tuple(leaves, entries, results);
}

nb::object set_tape(nb::object list) {
  PyObject* before = std::exchange(tape, list.is_none() ? nullptr : list.release().ptr());
  return before ? nb::steal(before) : nb::none();
}

bool set_stepped(bool is_stepped) {
  want_whole_chains(is_stepped - stepped);
  return std::exchange(stepped, is_stepped);
}

bool is_on_tape() { return tape != nullptr; }

bool is_stepped() { return stepped; }

PyObject* segment_of_tape(const CachedTrace& cached, const std::vector<Leaf>& leaves, const std::vector<Provenance>& provenance,
                          const std::vector<ValueRef>& living) try {
  nb::list values, lines, results;
  for (size_t k = 0; k < leaves.size(); ++k) {
    const Leaf& leaf = leaves[k];
    values.append(steal_checked(leaf.value ? wrap(leaf.value) : scalar_object(cached.trace.leaves[k], leaf.scalar)));
  }
  for (size_t k = 0; k < cached.trace.entries.size(); ++k) lines.append(nb::make_tuple(provenance[k].location, provenance[k].differentiated()));
  for (size_t j = 0; j < living.size(); ++j) {
    Ref entry = j < cached.living ? cached.outputs[j] : cached.deferred[j - cached.living];
    results.append(nb::make_tuple(entry, steal_checked(wrap(living[j]))));
  }
  return nb::make_tuple(values, describe_trace(cached.trace, cached.outputs)[1], lines, results).release().ptr();
} catch (nb::python_error& error) {
  error.restore();
  return nullptr;
}

bool add_to_tape(PyObject* segment) { return !tape || PyList_Append(tape, segment) == 0; }

}  // namespace twofold
