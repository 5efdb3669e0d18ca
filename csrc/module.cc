// The Python module: programs, hooks, settings and the recorder's switches.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>

#include "arena.h"
#include "autocast.h"
#include "background_run.h"
#include "batch_program.h"
#include "cache.h"
#include "call_memo.h"
#include "compiled.h"
#include "declared.h"
#include "describe.h"
#include "expression.h"
#include "gradient.h"
#include "gradient_mode.h"
#include "guard.h"
#include "location.h"
#include "module_programs.h"
#include "node.h"
#include "object.h"
#include "open_graph.h"
#include "profile.h"
#include "process.h"
#include "purity.h"
#include "recompute.h"
#include "rows.h"
#include "size_type.h"
#include "template.h"
#include "tensor.h"
#include "torch_function.h"
#include "untraced.h"
#include "vector_caster.h"

namespace nb = nanobind;

namespace twofold {
namespace {

struct HookSlot {
  const char* name;
  PyObject** slot;
};
const HookSlot kHooks[] = {
    {"expand", &hooks.expand},
    {"expand_gradients", &hooks.expand_gradients},
    {"compile_op_instance", &hooks.compile_op_instance},
    {"compile_trace", &hooks.compile_trace},
    {"kernel_error", &hooks.kernel_error},
    {"host_error", &hooks.host_error},
    {"ones", &hooks.ones},
    {"zeros", &hooks.zeros},
    {"specialise_error", &hooks.specialise_error},
    {"feed_array", &hooks.feed_array},
    {"wide_array", &hooks.wide_array},
    {"write_view", &hooks.write_view},
    {"as_operand", &hooks.as_operand},
    {"cast", &hooks.cast},
    {"error_class", &hooks.error_class},
    {"locate_error", &hooks.locate_error},
    {"renamed_keywords", &hooks.renamed_keywords},
    {"write_out", &hooks.write_out},
    {"display", &hooks.display},
    {"construct", &hooks.construct},
    {"symbolic_observed", &hooks.symbolic_observed},
    {"no_gradient", &hooks.no_gradient},
    {"accumulate", &hooks.accumulate},
    {"copy", &hooks.copy},
    {"join_rows", &hooks.join_rows},
    {"row_product", &hooks.row_product},
    {"row_table", &hooks.row_table},
    {"row_sum", &hooks.row_sum},
    {"operator_method", &hooks.operator_method},
    {"pullback_blocks", &hooks.pullback_blocks},
    {"pullback_chain", &hooks.pullback_chain},
    {"pullback_rows", &hooks.pullback_rows},
    {"view_layout", &hooks.view_layout},
    {"view_array", &hooks.view_array},
    {"write_storage", &hooks.write_storage},
    {"traits_of", &hooks.traits_of},
    {"is_cheap", &hooks.is_cheap},
    {"dtype_class", &hooks.dtype_class},
    {"size_class", &hooks.size_class},
    {"symbol_class", &hooks.symbol_class},
    {"symbolic_type", &hooks.symbolic_type},
    {"wrong_gradient", &hooks.wrong_gradient},
    {"sparse_gradient", &hooks.sparse_gradient},
    {"listed_operand", &hooks.listed_operand},
    {"lists_at_once", &hooks.lists_at_once},
    {"declared_equal", &hooks.declared_equal},
    {"cast_operands", &hooks.cast_operands},
    {"template_of", &hooks.template_of},
    {"template_gradients", &hooks.template_gradients},
    {"template_program", &hooks.template_program},
    {"plan_trace", &hooks.plan_trace},
    {"plan_batch", &hooks.plan_batch},
    {"log_batches", &hooks.log_batches},
    {"bad_value", &hooks.bad_value},
};

nb::object run_size_program(nb::handle encoded, const std::vector<int64_t>& values) {
  SizeProgram program;
  if (!program.read(encoded.ptr())) throw nb::python_error();
  std::vector<int64_t> results;
  if (values.size() != program.inputs()) throw nb::value_error("a size program takes another number of sizes");
  if (!program.run(values.data(), results)) return nb::none();
  return nb::cast(results);
}

// Sets a mode by name; returns the name of the one before. ValueError for an unknown name.
template <class Mode, size_t count>
std::string exchanged(Mode& setting, const char* const (&names)[count], const std::string& name, const char* error) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) throw nb::value_error(error);
  return names[static_cast<size_t>(std::exchange(setting, static_cast<Mode>(found - std::begin(names))))];
}

void set_templates(const std::string& mode) {
  if (mode == "off") template_mode = Templates::kOff;
  else if (mode == "second_size") template_mode = Templates::kSecondSize;
  else if (mode == "at_once") template_mode = Templates::kAtOnce;
  else if (mode == "sizes_at_once") template_mode = Templates::kSizesAtOnce;
  else throw nb::value_error(("templates are made off, second_size, at_once or sizes_at_once, not " + mode).c_str());
}

void set_hook(const std::string& name, nb::object value) {
  for (const auto& hook : kHooks) {
    if (name == hook.name) {
      Py_XSETREF(*hook.slot, value.is_none() ? nullptr : value.release().ptr());
      return;
    }
  }
  throw nb::value_error(("no hook is named " + name).c_str());
}

ExecutableRef& executable_in(nb::handle capsule) {
  auto* found = static_cast<ExecutableRef*>(PyCapsule_GetPointer(capsule.ptr(), kExecutableCapsule));
  if (!found) throw nb::python_error();
  return *found;
}

// A trace, and in which order its entries run, see steps_of.
nb::tuple describe_steps(const CanonicalTrace& canonical) try {
  const nb::tuple trace = describe_trace(canonical.trace, canonical.outputs);
  nb::list steps;
  for (uint32_t step : steps_of(canonical)) steps.append(step);
  return nb::make_tuple(trace[0], trace[1], trace[2], steps);
} catch (const PythonError&) {
  throw nb::python_error();
}

// What the compiler needs of an executable.
nb::tuple describe_executable(nb::handle capsule) { return describe_steps(executable_in(capsule)->canonical); }

nb::object captured_object(const Leaf& leaf, Type* type);

// The graph of the first tensor, and of those of the same trace: their numbers among `tensors`, the
// description of the trace, (location, forward) of its entries, and its inputs. None if there is no graph.
nb::object trace_above(nb::list tensors) {
  std::vector<ValueRef> values;
  for (nb::handle item : tensors) {
    if (!is_tensor(item.ptr())) throw nb::type_error("expected tensors");
    values.push_back(held_value(reinterpret_cast<PyTensor*>(item.ptr())));
    if (!values.back()) throw nb::python_error();
  }
  nb::list numbers, lines, leaves;
  Recorder& recorder = Recorder::current();
  if (!compute_elsewhere(recorder, values)) throw nb::python_error();
  const Value* first = values.at(0).get();
  // Until all is copied nothing is made that the garbage collector counts: what it calls may run the trace.
  const bool pending = first->pending && first->owner == &recorder && !recorder.in_flight(first);
  if (!pending && !first->saved) return nb::none();
  if (pending) recorder.forget_prediction();
  const SavedTrace* saved = pending ? nullptr : first->saved.get();
  if (saved && !saved->packed.empty()) return nb::none();  // hooks for saved tensors hold what it has read
  std::vector<Ref> outputs;
  for (size_t k = 0; k < values.size(); ++k) {
    const Value* value = values[k].get();
    const bool same = pending ? value->pending && value->owner == &recorder : !value->pending && value->saved.get() == saved;
    if (!same) continue;
    numbers.append(k);
    outputs.push_back(value->index);
  }
  const CanonicalTrace canonical(pending ? recorder.trace() : saved->trace->trace, outputs);
  std::vector<Provenance> made_at;
  for (int32_t entry : canonical.entry_source) {
    const auto i = static_cast<size_t>(entry);
    made_at.push_back(pending ? recorder.provenance(i) : saved->provenance[i]);
  }
  const std::vector<Leaf> sources = pending ? recorder.leaves() : saved->leaves;
  for (const Provenance& one : made_at) lines.append(nb::make_tuple(one.location, one.differentiated()));
  for (size_t k = 0; k < canonical.leaf_source.size(); ++k) {
    const auto source = static_cast<size_t>(canonical.leaf_source[k]);
    leaves.append(source < sources.size() ? captured_object(sources[source], canonical.trace.leaves[k]) : nb::none());
  }
  return nb::make_tuple(numbers, describe_steps(canonical), lines, leaves);
}

std::vector<ValueRef> values_in(nb::tuple tensors) {
  std::vector<ValueRef> values;
  for (nb::handle item : tensors) {
    if (!is_tensor(item.ptr())) throw nb::type_error("expected tensors");
    Value* value = current_value(reinterpret_cast<PyTensor*>(item.ptr()));
    if (!value) throw nb::python_error();
    values.push_back(share(value));
  }
  return values;
}

struct PyClosed {
  std::unique_ptr<ClosedTrace> trace;
};

// Closure conversion: the trace of `outputs` since `mark`, as a function of `inputs` and captured values.
PyClosed close(nb::tuple inputs, nb::tuple outputs, uint64_t mark) {
  auto made = close_trace(values_in(inputs), values_in(outputs), mark);
  if (!made) throw nb::python_error();
  return PyClosed{std::move(made)};
}

nb::object captured_object(const Leaf& leaf, Type* type) {
  PyObject* made = leaf.value ? wrap(leaf.value) : scalar_object(type, leaf.scalar);
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

// For each input of a closed trace the number of an argument, or a 1-tuple of the captured tensor or number.
nb::list closed_leaves(const PyClosed& self) {
  nb::list found;
  const ClosedTrace& closed = *self.trace;
  for (size_t k = 0; k < closed.sources.size(); ++k) {
    const LeafSource& source = closed.sources[k];
    if (source.input >= 0) found.append(source.input);
    else found.append(nb::make_tuple(captured_object(source.captured, closed.canonical.trace.leaves[k])));
  }
  return found;
}

// Where the entries were declared.
std::vector<uint32_t> closed_locations(const PyClosed& self) {
  std::vector<uint32_t> found;
  for (Provenance provenance : self.trace->provenance) found.push_back(provenance.origin());
  return found;
}

// The locations of the entries, and of those of a backward pass that of the forward call; 0: none.
std::vector<std::pair<uint32_t, uint32_t>> closed_provenance(const PyClosed& self) {
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (Provenance provenance : self.trace->provenance) found.emplace_back(provenance.location, provenance.differentiated());
  return found;
}

// Equal for traces of the same computation and gradient masks.
nb::bytes closed_key(const PyClosed& self) {
  std::string key = self.trace->canonical.key();
  for (const Entry& entry : self.trace->canonical.trace.entries) {
    key.append(reinterpret_cast<const char*>(&entry.gradient_mask), sizeof entry.gradient_mask);
  }
  return nb::bytes(key.data(), key.size());
}

// Runs an executable's trace key for tests of the first law.
nb::bytes portable_key(nb::handle capsule) {
  std::string key = executable_in(capsule)->canonical.portable_key();
  return nb::bytes(key.data(), key.size());
}

void set_tier(const std::string& name) {
  if (name == "auto") settings.tier = Tier::kAuto;
  else if (name == "unfused") settings.tier = Tier::kUnfused;
  else if (name == "fused") settings.tier = Tier::kFused;
  else throw nb::value_error("tier is auto, unfused or fused");
}

nb::dict statistics() {
  Recorder& recorder = Recorder::current();
  PoolStatistics pool = pool_statistics();
  nb::dict out;
  for (const CacheAccount* cache : cache_accounts()) out[cache->name] = cache->count;
  TemplateCounts templates = template_counts();
  out["families"] = templates.families;
  out["templates"] = templates.made;
  out["template_programs"] = templates.programs;
  out["template_uses"] = templates.uses;
  out["templates_refused"] = templates.refused;
  out["fused_dropped"] = dropped_programs();
  out["declared_graphs"] = declared_counts.graphs;
  out["declared_bodies"] = declared_counts.bodies;
  out["open_graphs"] = declared_counts.open;
  out["open_graph_uses"] = declared_counts.uses;
  out["trace_plans"] = trace_family_counts.plans;
  out["trace_plan_uses"] = trace_family_counts.uses;
  out["batched_traces"] = batch_counts.traces;
  out["batch_launches"] = batch_counts.launches;
  out["batched_calls"] = batch_counts.calls;
  out["batch_plans"] = batch_counts.plans;
  out["background_runs"] = background_runs();
  out["predicted_flushes"] = recorder.predicted_flushes;
  out["replayed_passes"] = recorder.replayed_passes;
  out["other_flushes"] = recorder.other_flushes;
  out["recorded"] = recorder.recorded;
  out["pool_in_use_bytes"] = pool.in_use;
  out["pool_cached_bytes"] = pool.cached;
  out["pool_peak_bytes"] = pool.peak;
  return out;
}

nb::list caches() {
  nb::list found;
  for (const CacheAccount* cache : cache_accounts()) {
    found.append(nb::make_tuple(cache->name, cache->count, cache->bytes, cache->budget, cache->hits, cache->misses, cache->evictions));
  }
  return found;
}

nb::object from_array(nb::handle array, bool share_memory, int dtype_code) {
  ValueRef value = value_from_array(array.ptr(), share_memory, dtype_code);
  PyObject* made = value ? wrap(std::move(value)) : nullptr;
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

// The closed graph of an op instance, for inspection and tests.
nb::object flush() {
  if (!Recorder::current().flush()) throw nb::python_error();
  return nb::none();
}

// Debuggers use sys.settrace or sys.monitoring; only then is each operation checked.
int follow_tracing(const char* event, PyObject*, void*) {
  if (std::strcmp(event, "sys.settrace") == 0 || std::strncmp(event, "sys.monitoring", 14) == 0) Recorder::tracing_possible = true;
  return 0;
}

PyMethodDef functions[] = {
    {"gradients_of", guarded<gradients_of>, METH_VARARGS, "gradients_of(outputs, seeds, targets, retain, create, shown): list of tensors or None."},
    {"backward_of", guarded<backward_of>, METH_VARARGS, "backward_of(outputs, seeds, targets, retain, create): one pass that adds to .grad."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

ProgramRef program_from_python(PyObject* object) {
  PyProgram* found = nullptr;
  if (!nb::try_cast<PyProgram*>(nb::handle(object), found) || !found) {
    PyErr_SetString(PyExc_TypeError, "compile must return a Program");
    return nullptr;
  }
  return found->program;
}

void bind_functions(nb::module_& m) {
  m.def("set_hook", &set_hook, nb::arg("name"), nb::arg("value").none());
  m.def("set_package_directory", [](const std::string& directory) { set_package_directory(directory.c_str()); });
  m.def("set_threads", &set_thread_count, nb::call_guard<nb::gil_scoped_release>());  // a run that another thread waits for may need the lock
  m.def("threads", &thread_count);
  m.def("set_tier", &set_tier);
  m.def("set_default_float", [](uint8_t dtype) { default_float = dtype; }, "The code of the dtype of calls whose operands have no floating one.");
  m.def("follows_standard", [](nb::handle tensor) {
    PyObject* const object = tensor.ptr();
    return is_tensor(object) && is_standard(&object, 1);
  }, "Whether it promotes as the array API standard says.");
  m.def("follow_standard", [](nb::handle tensor) {
    if (!is_tensor(tensor.ptr())) throw nb::type_error("not a tensor");
    reinterpret_cast<PyTensor*>(tensor.ptr())->standard = any_standard = true;
  }, "Promote a tensor, and what is computed from it, as the array API standard says.");
  m.def("set_templates", &set_templates, "When plans with symbolic sizes are made: off, second_size or at_once.");
  m.def("run_size_program", &run_size_program, nb::arg("encoded"), nb::arg("values"), "Its results; None where a guard does not hold.");
  m.def("plan_arena", [](const std::vector<std::vector<int32_t>>& uses, const std::vector<int64_t>& sizes, bool reuse) {
    ArenaPlan plan = plan_arena(uses, sizes, reuse);
    return nb::make_tuple(plan.offsets, plan.bytes);
  }, nb::arg("uses"), nb::arg("sizes"), nb::arg("reuse"));
  m.def("set_node_budget", [](int64_t nodes) { settings.node_budget = std::max<int64_t>(1, nodes); });
  m.def("grad_enabled", [] {
    CallWatch::spoil();
    return Recorder::current().grad_enabled;
  });
  m.def("at_hooked_position", [](nb::handle tensor) {
    PyObject* made = at_hooked_position(tensor.ptr());
    if (!made) throw nb::python_error();
    return nb::steal(made);
  }, nb::arg("tensor"), "The value of a tensor with the graph of the value whose hooks run.");
  m.def("eager", [] { return Recorder::current().eager; });
  m.def("set_eager", [](bool on) { return std::exchange(Recorder::current().eager, on); });
  m.def("set_saved_tensor_hooks", [](nb::object pack, nb::object unpack) {
    Recorder& recorder = Recorder::current();
    if (!recorder.flush()) throw nb::python_error();
    Py_XSETREF(recorder.pack, pack.is_none() ? nullptr : pack.release().ptr());
    Py_XSETREF(recorder.unpack, unpack.is_none() ? nullptr : unpack.release().ptr());
  }, nb::arg("pack").none(), nb::arg("unpack").none());
  m.def("flush", &flush, "Run everything recorded so far in this thread.");
  m.def("begin_update", [] {
    if (!Recorder::current().begin_update()) throw nb::python_error();
  }, "Before an optimizer changes parameters: runs what was recorded, if that is another graph in each step.");
  m.def("end_update", [] {
    if (!Recorder::current().flush(false, nullptr, true)) throw nb::python_error();
  }, "After an optimizer changed parameters: runs what was recorded; a long run may go on while the next step is recorded.");
  m.def("finish_background", [] {
    if (!finish_background()) throw nb::python_error();
  }, "Wait for the run that goes on in the background, if there is one.");
  m.def("pending_checks", [] {
    int found = Recorder::current().has_checks();
    if (found < 0) throw nb::python_error();
    return found == 1;
  }, "Whether something recorded reports wrong values when it is computed.");
  m.def("pending", [] { return Recorder::current().size(); });
  m.def("pending_held", [] { return Recorder::current().living(); }, "The number of recorded calls whose results somebody holds.");
  m.def("statistics", &statistics);
  m.def("set_cache_budget", &set_cache_budget, nb::arg("bytes"), "Of all caches of the core; each has a part of it.");
  m.def("caches", &caches, "For each cache of the core: name, count, bytes, budget, hits, misses, evictions.");
  m.def("reset_peak", &pool_reset_peak);
  m.def("clear_caches", [] {
    clear_cached_traces();
    clear_executables();
    pool_trim();
  });
  m.def("from_array_span", [](nb::handle array) {
    PyObject* made = wrap(value_from_span(array.ptr()));
    if (!made) throw nb::python_error();
    return nb::steal(made);
  });
  m.def("from_numbers", [](nb::handle data, int float_code) {
    ValueRef value = value_from_numbers(data.ptr(), static_cast<uint8_t>(float_code));
    PyObject* made = value ? wrap(std::move(value)) : Py_NewRef(Py_None);
    if (!made) throw nb::python_error();
    return nb::steal(made);
  });
  m.def("from_array", &from_array, nb::arg("array"), nb::arg("share_memory"), nb::arg("dtype_code") = -1);
  m.def("describe_executable", &describe_executable);
  m.def("trace_above", &trace_above);
  m.def("history_order", [](nb::handle tensor) {
    Value* value = is_tensor(tensor.ptr()) ? current_value(reinterpret_cast<PyTensor*>(tensor.ptr())) : nullptr;
    if (!value) throw nb::type_error("expected a tensor");
    return value->pending ? UINT64_MAX : value->saved ? value->saved->order : 0;
  }, "Grows with every run whose values can be differentiated; 0 for a value without a trace.");
  m.def("is_shared_outside", [](nb::handle tensor) {
    return is_tensor(tensor.ptr()) && is_shared_outside(reinterpret_cast<PyTensor*>(tensor.ptr())->value);
  }, "Whether foreign code may change what a tensor holds.");
  m.def("traced_runs", &traced_runs, "The history order of the last run.");
  m.def("entry_count", [](nb::handle capsule) { return executable_in(capsule)->canonical.trace.entries.size(); });
  m.def("close", &close, nb::arg("inputs"), nb::arg("outputs"), nb::arg("mark"));
  m.def("declaration_mark", &declaration_mark);
  m.def("declare_as", &declare_as, nb::arg("number"));
  m.def("count_body", [] { ++declared_counts.bodies; });
  m.def("refuse_impure", [](nb::object refusal) {
    PyObject* before = Purity::exchange(refusal.is_none() ? nullptr : refusal.release().ptr());
    return before ? nb::steal(before) : nb::none();
  }, nb::arg("refusal").none(), "Raise this where a declared function is about to use anything but its arguments; what was raised before.");
  m.def("portable_key", &portable_key);
  m.def("last_executable", [] {
    ExecutableRef executable = Recorder::current().last_executable();
    if (!executable) return nb::object(nb::none());
    PyObject* capsule = executable_capsule(executable);
    if (!capsule) throw nb::python_error();
    return nb::object(nb::steal(capsule));
  });
  m.def("set_fused", [](nb::handle capsule, PyProgram& program, int64_t nanoseconds) {
    executable_in(capsule)->set_fused(program.program, nanoseconds);
  });
  m.def("add_trace_plan", [](nb::handle capsule, nb::tuple varies, nb::handle encoded) {
    if (!executable_in(capsule)->add_plan(varies.ptr(), encoded.ptr())) throw nb::python_error();
  }, nb::arg("executable"), nb::arg("varies"), nb::arg("encoded").none());
  m.def("add_batch_plan", [](nb::handle capsule, nb::handle encoded) {
    BatchFamily* family = batch_in(capsule.ptr());
    if (!family || !family->add_plan(encoded.ptr())) throw nb::python_error();
  }, nb::arg("family"), nb::arg("encoded").none());
  m.def("ask_again_for_batch", [](nb::handle capsule) {
    if (BatchFamily* family = batch_in(capsule.ptr())) family->ask_again();
    else throw nb::python_error();
  });
  m.def("set_anomaly", [](const std::string& name) {
    static const char* const names[] = {"off", "everywhere", "backward"};
    const auto before = exchanged(settings.anomaly, names, name, "results are looked over: off, everywhere or backward");
    settings.tells_finite |= settings.anomaly != Anomaly::kOff;
    return before;
  });
  m.def("tells_finite", [] { return settings.tells_finite; });
  m.def("set_batching", [](const std::string& name) {
    static const char* const names[] = {"off", "auto", "at_once", "calls_at_once"};
    return exchanged(settings.batching, names, name, "batching is off, auto, at_once or calls_at_once");
  });
  m.def("ask_again", [](nb::handle capsule) { executable_in(capsule)->ask_again(); });
  m.def("at_work", &at_work, "A thread begins or ends work that the end of the process does not wait for.");
  m.def("capture_location", &capture_location);
  m.def("declaring_location", &declaring_location);
  m.def("location_codes", [](uint32_t location) { return nb::steal(location_codes(location)); }, nb::arg("location"),
        "(code object, instruction offset) of a location and of its callers, innermost first.");
  m.def("forced_location", &forced_location, "The location that declarations are placed at, or 0: where they are made.");
  m.def("location_text", &location_text);
  m.def("location_frames", [](uint32_t location) { return nb::steal(location_frames(location)); },
        "[(file, line, columns, function)] of a location, the innermost call first.");
  m.def("location_of", [](nb::handle tensor) {
    if (!is_tensor(tensor.ptr())) throw nb::type_error("expected a tensor");
    return reinterpret_cast<PyTensor*>(tensor.ptr())->value->location;
  }, "Where a value was recorded.");
  m.def("set_scope", &set_scope);
  m.def("scope_of", &scope_of);
  m.def("profile_start", &profile::start);
  m.def("profile_stop", [] {
    PyObject* found = profile::stop();
    if (!found) throw nb::python_error();
    return nb::steal(found);
  });
  m.def("line_text", &line_text);
  m.def("location_count", &location_count);
  m.def("call_untraced", &call_untraced, "Calls a function with arguments; no debugger follows it.");
  m.def("call_traced", &call_traced, "Inside call_untraced, calls a function that a debugger follows.");
  m.def("hide_frames", &hide_frames, nb::arg("change"), "Changes how often this thread is hidden from debuggers; returns that number.");
  m.def("set_tape", &set_tape, nb::arg("list").none(), "The list in which this thread keeps what it runs, or None; returns the one before.");
  m.def("set_stepped", &set_stepped, nb::arg("is_stepped"), "Sets whether a debugger steps through what this thread records; returns what was set before.");
}

}  // namespace twofold

NB_MODULE(_core, m) {
  using namespace twofold;
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "twofold works in the main interpreter only; use processes or threads in place of subinterpreters.");
    throw nb::python_error();
  }
  nb::set_leak_warnings(false);  // machine code stays mapped on purpose
  bind_programs(m);
  nb::class_<PyClosed>(m, "Closed")
      .def_prop_ro("key", &closed_key)
      .def_prop_ro("leaves", &closed_leaves)
      .def_prop_ro("locations", &closed_locations)
      .def_prop_ro("provenance", &closed_provenance)
      .def("describe", [](const PyClosed& self) { return describe_trace(self.trace->canonical.trace, self.trace->canonical.outputs); });
  bind_functions(m);
  watch_process();
  Recorder::watch_forks();
  Recorder::tracing_possible = Recorder::is_traced();
  PySys_AddAuditHook(guarded<follow_tracing>, nullptr);
  register_object(m);
  if (import_numpy() < 0 || add_tensor_type(m.ptr()) < 0 || add_operation_type(m.ptr()) < 0 || add_torch_function(m.ptr()) < 0 || add_function_type(m.ptr()) < 0 || add_node_type(m.ptr()) < 0 || add_size_type(m.ptr()) < 0 || add_compiled_type(m.ptr()) < 0 ||
      add_call_functions(m.ptr()) < 0 || add_grad_fn_functions(m.ptr()) < 0 || add_gradient_mode_type(m.ptr()) < 0 || add_autocast_type(m.ptr()) < 0 || add_expression_type(m.ptr()) < 0 || add_row_functions(m.ptr()) < 0 ||
      PyModule_AddFunctions(m.ptr(), functions) < 0) {
    throw nb::python_error();
  }
}
