#include "bad_value.h"

#include <Python.h>

#include <algorithm>
#include <cstring>

#include "declared.h"
#include "owned.h"

namespace twofold {

PyObject* operands_of(const Trace& trace, const Entry& entry, void* const* pointers, RunProvenance provenance) try {
  Owned tuple(PyTuple_New(static_cast<Py_ssize_t>(entry.count)));
  for (uint32_t k = 0; tuple && k < entry.count; ++k) {
    const Ref ref = trace.inputs(entry)[k];
    Type* type = trace.type_of_ref(ref);
    PyObject* item;
    if (!pointers[k]) {
      item = Py_NewRef(Py_None);
    } else if (type->weak && ref < 0 && type->nbytes == static_cast<int64_t>(sizeof(uint64_t))) {
      uint64_t bits;
      std::memcpy(&bits, pointers[k], sizeof bits);
      item = scalar_object(type, bits);
    } else {
      ValueRef value(new_value(type));
      value->buffer = BufferRef(new_buffer(static_cast<size_t>(type->nbytes)));
      std::memcpy(value->buffer->data, pointers[k], static_cast<size_t>(type->nbytes));
      value->location = ref >= 0 ? provenance[static_cast<size_t>(ref)].origin() : provenance.leaf_location(provenance.leaves, static_cast<size_t>(~ref));
      item = wrap(std::move(value));
    }
    if (!item) break;
    PyTuple_SET_ITEM(tuple.object, static_cast<Py_ssize_t>(k), item);
  }
  if (!PyErr_Occurred()) return Py_XNewRef(tuple.object);
  PyErr_Clear();
  return nullptr;
} catch (const std::bad_alloc&) {
  PyErr_Clear();
  return nullptr;
}

BadValueSearch::BadValueSearch(const CanonicalTrace& canonical, void* const* inputs, const std::vector<BufferRef>& outputs,
                               RunProvenance provenance, bool backward_only)
    : trace_(canonical.trace),
      inputs_(inputs, inputs + canonical.trace.leaves.size()),
      provenance_(provenance),
      backward_only_(backward_only),
      values_(canonical.trace.entries.size()) {
  const Operation* const sum = operation_of(hooks.accumulate);
  for (size_t i = 0; backward_only && i < trace_.entries.size(); ++i) {
    const Entry& entry = trace_.entries[i];
    const Ref* in = trace_.inputs(entry);
    const bool is_sum = entry.instance->operation == sum;
    const auto made = [&](Ref ref) { return ref >= 0 && of_pass_[static_cast<size_t>(ref)]; };
    of_pass_.push_back(provenance_[i].forward != 0 || (is_sum && std::any_of(in, in + entry.count, made)));
  }
  bool overwritten = false;
  for (void*& input : inputs_) {
    const auto taken = [&](const BufferRef& output) { return output && output->data == input; };
    if (!std::any_of(outputs.begin(), outputs.end(), taken)) continue;
    input = nullptr;
    overwritten = true;
  }
  for (size_t k = 0; overwritten && k < outputs.size(); ++k) {
    if (canonical.outputs[k] >= 0) values_[static_cast<size_t>(canonical.outputs[k])] = outputs[k];
  }
}

void* BadValueSearch::data_of(Ref ref) const {
  if (ref < 0) return inputs_[static_cast<size_t>(~ref)];
  const BufferRef& value = values_[static_cast<size_t>(ref)];
  return value ? value->data : nullptr;
}

void BadValueSearch::compute(Ref output, Interrupts& interrupts) {
  const size_t count = static_cast<size_t>(output) + 1;
  std::vector<char> needed(count, 0);
  needed[static_cast<size_t>(output)] = 1;
  for (size_t i = count; i-- > 0;) {
    const Entry& entry = trace_.entries[i];
    for (uint32_t k = 0; needed[i] && k < entry.count; ++k) {
      const Ref ref = trace_.inputs(entry)[k];
      if (ref >= 0) needed[static_cast<size_t>(ref)] = 1;
    }
  }
  std::vector<void*> pointers;
  for (size_t i = 0; i < count; ++i) {
    if (!needed[i] || values_[i]) continue;
    const Entry& entry = trace_.entries[i];
    Program* program = program_of(entry.instance);
    if (!program) throw PythonError{};
    pointers.clear();
    for (uint32_t k = 0; k < entry.count; ++k) pointers.push_back(data_of(trace_.inputs(entry)[k]));
    if (std::count(pointers.begin(), pointers.end(), nullptr)) continue;
    BufferRef result(new_buffer(static_cast<size_t>(entry.instance->output->nbytes)));
    void* data = result->data;
    program->run(pointers.data(), &data, interrupts);
    values_[i] = std::move(result);
  }
}

Finite BadValueSearch::state_of(Ref ref) {
  const void* data = data_of(ref);
  return data ? finite_in(trace_.type_of_ref(ref), data) : Finite::kAll;
}

Ref BadValueSearch::nan_into(Ref entry, bool& any) {
  const Entry& call = trace_.entries[static_cast<size_t>(entry)];
  const Ref* in = trace_.inputs(call);
  Ref nan = -1;
  for (uint32_t k = 0; k < call.count; ++k) {
    const Finite found = state_of(in[k]);
    any |= found != Finite::kAll;
    if (found != Finite::kNan) continue;
    if (!is_of_pass(in[k])) return entry;
    if (nan < 0) nan = in[k];
  }
  return nan;
}

// An explicit stack, as a trace may be deep.
Ref BadValueSearch::go_back(Ref entry) {
  struct Open {
    Ref entry;
    uint32_t next;  // the operand to look at
    bool any;       // whether an operand is bad
  };
  std::vector<Open> open;
  for (;;) {
    if (!visited_[static_cast<size_t>(entry)]) {
      visited_[static_cast<size_t>(entry)] = 1;
      bool any = false;
      const Ref nan = nan_into(entry, any);
      // a sum of cotangents that makes NaN of infinities, or adds what held NaN before the pass
      if (backward_only_ && (nan < 0 || nan == entry) && !provenance_[static_cast<size_t>(entry)].forward) return -1;
      if (nan == entry) return entry;
      if (nan >= 0) {
        entry = nan;
        continue;
      }
      open.push_back({entry, 0, any});
    }
    for (entry = -1; entry < 0; open.pop_back()) {
      if (open.empty()) return -1;
      Open& last = open.back();
      const Entry& call = trace_.entries[static_cast<size_t>(last.entry)];
      for (; last.any && entry < 0 && last.next < call.count; ++last.next) {
        const Ref in = trace_.inputs(call)[last.next];
        if (is_of_pass(in) && state_of(in) != Finite::kAll) entry = in;
      }
      if (entry >= 0) break;
      if (state_of(last.entry) == Finite::kNan || (!last.any && call.count != 0)) return last.entry;
    }
  }
}

Ref BadValueSearch::origin_of(Ref output, Interrupts& interrupts) {
  compute(output, interrupts);
  visited_.assign(trace_.entries.size(), 0);
  return go_back(output);
}

// The operation that the entry differentiates, if it is in this trace.
const char* BadValueSearch::differentiated(Ref entry) const {
  const Provenance provenance = provenance_[static_cast<size_t>(entry)];
  const uint32_t line = provenance.by_user() ? 0 : provenance.forward;
  for (size_t i = 0; line && i < static_cast<size_t>(entry); ++i) {
    const Provenance other = provenance_[i];
    if (!other.forward && other.location == line) return trace_.entries[i].instance->operation->name.c_str();
  }
  return nullptr;
}

bool BadValueSearch::raise(Ref entry) {
  const Entry& call = trace_.entries[static_cast<size_t>(entry)];
  const Provenance provenance = provenance_[static_cast<size_t>(entry)];
  std::vector<void*> pointers;
  for (uint32_t k = 0; k < call.count; ++k) pointers.push_back(data_of(trace_.inputs(call)[k]));
  const Owned operands(operands_of(trace_, call, pointers.data(), provenance_));
  if (!operands) {
    PyErr_NoMemory();
    return true;
  }
  ValueRef value(new_value(call.instance->output));
  value->buffer = values_[static_cast<size_t>(entry)];
  value->location = provenance.origin();
  const Owned result(wrap(std::move(value)));
  const Owned error(result ? PyObject_CallFunction(hooks.bad_value, "OOOO(II)sz", call.instance->operation->python,
                                                   call.instance->attributes->tuple, operands.object, result.object, provenance.origin(),
                                                   provenance.other(), provenance_text(provenance).c_str(),
                                                   differentiated(entry))
                           : nullptr);
  if (!error) return true;
  if (error.object == Py_None) return false;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.object)), error.object);
  return true;
}

}  // namespace twofold
