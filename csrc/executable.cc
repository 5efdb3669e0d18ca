#include <Python.h>

#include "executable.h"

#include <new>
#include <unordered_map>

#include "location.h"

namespace twofold {

Settings settings;

namespace {

// Programs whose structure never repeats must not fill the memory.
constexpr size_t kMostExecutables = 4096;

std::unordered_map<std::string, ExecutableRef>& table() {
  static auto& executables = *new std::unordered_map<std::string, ExecutableRef>();
  return executables;
}

}  // namespace

void raise_kernel_error(const Program& program, const KernelError& error, const Signature* called, uint32_t location) {
  size_t count = called ? called->inputs.size() : 0;
  PyObject* types = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; types && i < count; ++i) {
    PyTuple_SET_ITEM(types, static_cast<Py_ssize_t>(i), Py_XNewRef(python_type(called->inputs[i])));
  }
  PyObject* result = PyObject_CallFunction(hooks.kernel_error, "OiLsON", program.labels ? program.labels : Py_None,
                                           static_cast<int>(error.label), static_cast<long long>(error.code),
                                           location_text(location).c_str(),
                                           called ? called->operation->python : Py_None, types);
  if (!result) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(result)), result);
  Py_DECREF(result);
}

namespace {

bool is_worded_error() { return PyErr_ExceptionMatches(hooks.error_class) != 0; }

// Replaces the error that a host function raised on purpose by one that tells the user's line.
void locate_host_error(uint32_t location) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* located = PyObject_CallFunction(hooks.host_error, "Os", value, location_text(location).c_str());
  if (located) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(located)), located);
  Py_XDECREF(located);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

// The first error of a run that goes on with what does not depend on the entry that failed.
class FirstError {
 public:
  ~FirstError() {
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(traceback_);
  }
  void keep() {
    if (type_) {
      PyErr_Clear();
    } else {
      PyErr_Fetch(&type_, &value_, &traceback_);
    }
  }
  // Sets the error again; false if there was none.
  bool restore() {
    if (!type_) return false;
    PyErr_Restore(type_, value_, traceback_);
    type_ = value_ = traceback_ = nullptr;
    return true;
  }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace

Executable::Executable(CanonicalTrace c) : canonical(std::move(c)) {}

Executable::~Executable() = default;

void Executable::set_fused(ProgramRef program) { fused_ = std::move(program); }

bool Executable::ask_for_fused(bool wait) {
  asked_ = true;
  auto* self = new ExecutableRef(shared_from_this());
  PyObject* capsule = PyCapsule_New(self, "twofold.executable", [](PyObject* c) {
    delete static_cast<ExecutableRef*>(PyCapsule_GetPointer(c, "twofold.executable"));
  });
  PyObject* result = PyObject_CallFunctionObjArgs(hooks.compile_trace, capsule, wait ? Py_True : Py_False, nullptr);
  Py_XDECREF(capsule);
  Py_XDECREF(result);
  return result != nullptr;
}

bool Executable::run(void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs) {
  ++runs;
  Tier tier = settings.tier;
  if (!fused_ && !asked_ && tier == Tier::kAuto && runs >= 2 && !ask_for_fused(false)) return false;
  if (!fused_ && tier == Tier::kFused && !ask_for_fused(true)) return false;
  try {
    if (fused_ && tier != Tier::kFirstSight) {
      ProgramRef program = fused_;
      return run_fused(*program, inputs, spare, outputs);
    }
    return run_first_sight(inputs, outputs);
  } catch (const std::bad_alloc&) {
    outputs.clear();
    PyErr_NoMemory();
  } catch (const PythonError&) {
    outputs.clear();
  }
  return false;
}

bool Executable::run_fused(Program& program, void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs) {
  constexpr size_t kOnStack = 64;
  void* on_stack[kOnStack];
  std::vector<void*> on_heap;
  size_t count = program.output_nbytes.size();
  void** pointers = on_stack;
  if (count > kOnStack) {
    on_heap.resize(count);
    pointers = on_heap.data();
  }
  outputs.resize(count);
  if (spare) {
    for (auto [input, output] : program.donations) {
      Buffer* free = spare[input];
      if (!free) continue;
      ++free->references;
      outputs[static_cast<size_t>(output)] = BufferRef(free);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (!outputs[i]) outputs[i] = BufferRef(new_buffer(static_cast<size_t>(program.output_nbytes[i])));
    pointers[i] = outputs[i]->data;
  }
  try {
    program.run(inputs, pointers);
  } catch (const KernelError&) {
    // A fused kernel stands for many lines; the same work one operation at a time finds the one that failed.
    outputs.clear();
    return run_first_sight(inputs, outputs);
  } catch (const PythonError&) {
    if (!is_worded_error()) throw;
    PyErr_Clear();
    outputs.clear();
    return run_first_sight(inputs, outputs);
  }
  return true;
}

void Executable::plan_first_sight() {
  uses_.assign(canonical.trace.entries.size(), 0);
  for (Ref ref : canonical.trace.refs) {
    if (ref >= 0) ++uses_[static_cast<size_t>(ref)];
  }
  for (Ref ref : canonical.outputs) {
    if (ref >= 0) ++uses_[static_cast<size_t>(ref)];
  }
}

bool Executable::run_first_sight(void* const* inputs, std::vector<BufferRef>& outputs) {
  if (uses_.size() != canonical.trace.entries.size() || uses_.empty()) plan_first_sight();
  const Trace& trace = canonical.trace;
  std::vector<uint32_t> left = uses_;
  std::vector<BufferRef> values(trace.entries.size());
  std::vector<void*> pointers;
  FirstError error;
  for (size_t i = 0; i < trace.entries.size(); ++i) {
    const Entry& entry = trace.entries[i];
    Program* program = program_of(entry.signature);
    if (!program) return false;
    const Ref* refs = trace.inputs(entry);
    pointers.clear();
    bool known = true;
    for (uint16_t k = 0; k < entry.count; ++k) {
      known &= refs[k] < 0 || values[static_cast<size_t>(refs[k])];
      if (known) pointers.push_back(refs[k] >= 0 ? values[static_cast<size_t>(refs[k])]->data : inputs[~refs[k]]);
    }
    if (known) {
      BufferRef result(new_buffer(static_cast<size_t>(entry.signature->output->nbytes)));
      void* output = result->data;
      try {
        program->run(pointers.data(), &output);
        values[i] = std::move(result);
      } catch (const KernelError& found) {
        raise_kernel_error(*program, found, entry.signature, entry.location);
        error.keep();
      } catch (const PythonError&) {
        if (!is_worded_error()) return false;
        locate_host_error(entry.location);
        error.keep();
      }
    }
    for (uint16_t k = 0; k < entry.count; ++k) {
      if (refs[k] >= 0 && --left[static_cast<size_t>(refs[k])] == 0) values[static_cast<size_t>(refs[k])] = BufferRef();
    }
    if (i % 1024 == 1023 && PyErr_CheckSignals() != 0) return false;
  }
  for (Ref ref : canonical.outputs) outputs.push_back(values[static_cast<size_t>(ref)]);
  return !error.restore();
}

ExecutableRef executable_of(CanonicalTrace canonical) {
  std::string key = canonical.key();
  auto found = table().find(key);
  if (found != table().end()) return found->second;
  if (table().size() >= kMostExecutables) clear_executables();
  auto made = std::make_shared<Executable>(std::move(canonical));
  table().emplace(std::move(key), made);
  return made;
}

size_t executable_count() { return table().size(); }

void clear_executables() {
  auto& executables = table();
  std::erase_if(executables, [](const auto& item) { return !item.second->is_fused() && item.second.use_count() == 1; });
  if (executables.size() >= kMostExecutables) executables.clear();
}

}  // namespace twofold
