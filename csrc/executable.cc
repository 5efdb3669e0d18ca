#include <Python.h>

#include "executable.h"

#include <cstring>
#include <new>

#include "bad_value.h"
#include "batch_run.h"
#include "cache.h"
#include "declared.h"
#include "guard.h"
#include "out_of_memory.h"
#include "owned.h"
#include "profile.h"
#include "threads.h"

namespace twofold {

Settings settings;

namespace {

constexpr size_t kEntryBytes = 96;           // what an entry takes, its part of batches included, about
constexpr size_t kMostFused = 512;           // largest number of entries to plan of a trace that runs in batches

// Traces hold their executables, so this cache has the budget of the cache of traces.
auto& executables = *new Cache<Executable>("executables", 5);
const bool holds = (add_holder([] { return executables.drop_oldest(); }), true);

}  // namespace

void raise_kernel_error(const Program& program, const KernelError& error, const FailedCall& call) {
  const OpInstance* called = call.called;
  size_t count = called ? called->inputs.size() : 0;
  PyObject* labels = program.labels;
  if (!labels && called && !(labels = labels_of(const_cast<OpInstance*>(called)))) return;
  const Owned types(types_tuple(called ? called->inputs.data() : nullptr, count));
  if (!types) return;
  const Owned result(PyObject_CallFunction(hooks.kernel_error, "OiLs(II)OOOO", labels ? labels : Py_None, static_cast<int>(error.label),
                                           static_cast<long long>(error.code), provenance_text(call.provenance).c_str(),
                                           call.provenance.origin(), call.provenance.other(),
                                           called ? called->operation->python : Py_None,
                                           called ? called->attributes->tuple : Py_None, types.object,
                                           call.operands ? call.operands : Py_None));
  if (result) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(result.object)), result.object);
}

bool is_worded_error() { return PyErr_ExceptionMatches(hooks.error_class) != 0; }

void locate_host_error(const FailedCall& call) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Owned located(PyObject_CallFunction(hooks.host_error, "Os(II)OOO", value, provenance_text(call.provenance).c_str(),
                                            call.provenance.origin(), call.provenance.other(),
                                            call.called ? call.called->operation->python : Py_None,
                                            call.called ? call.called->attributes->tuple : Py_None,
                                            call.operands ? call.operands : Py_None));
  if (located) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(located.object)), located.object);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

namespace {

// A compile that LLVM rejects fails every time; any other error is from a signal handler.
void note_interrupted_compile(Interrupts& interrupts) {
  if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !is_worded_error()) interrupts.note_raised();
}

// Runs a fused or batched program; true, without a Python error, if it failed in a way that running op by
// op will locate.
template <class Run>
bool fails_together(Run run, const Interrupts& interrupts) {
  try {
    run();
    return false;
  } catch (const KernelError&) {
  } catch (const std::bad_alloc&) {
    // Op by op needs less memory.
  } catch (const PythonError&) {
    if (interrupts.raised() || !is_worded_error()) throw;
    PyErr_Clear();
  }
  return true;
}

}  // namespace

void release_executable(PyObject* capsule) {
  delete static_cast<ExecutableRef*>(PyCapsule_GetPointer(capsule, kExecutableCapsule));
}

PyObject* executable_capsule(ExecutableRef executable) {
  auto owned = std::make_unique<ExecutableRef>(std::move(executable));
  PyObject* capsule = PyCapsule_New(owned.get(), kExecutableCapsule, guarded<release_executable>);
  if (capsule) static_cast<void>(owned.release());
  return capsule;
}

Executable::Executable(CanonicalTrace c) : canonical(std::move(c)) {}

Executable::~Executable() = default;

size_t Executable::memory() const {
  return sizeof *this + canonical.memory() + (unfused_ ? unfused_->memory() : 0) + (fused_ ? fused_->memory() : 0) +
         (batches_ ? batches_->memory() : 0);
}

void Executable::charge(ptrdiff_t bytes) const {
  if (is_cached_) executables.charge(bytes);
}

void Executable::borrow(bool is_needed) const {
  if (is_cached_ && (is_needed || is_long())) executables.borrow(is_needed ? Loan::kNeeded : Loan::kExpected);
}

bool Executable::keep_fused(ProgramRef program) {
  const bool again = fused_ && program->tells_finite && !fused_->tells_finite;
  fused_ = std::move(program);
  harmless_ = nullptr;
  charge(static_cast<ptrdiff_t>(fused_->memory()));
  executables.bound();
  return !again;
}

void Executable::set_fused(ProgramRef program, int64_t nanoseconds) {
  if (keep_fused(std::move(program))) choice_.compiled(nanoseconds, nanoseconds ? entries_to_plan() : 0, family_.lock().get());
}

std::pair<uint32_t, uint32_t> Executable::lines(RunProvenance provenance) const {
  const size_t count = canonical.trace.entries.size();
  if (count == 0) return {0, 0};
  return {provenance[0].origin(), provenance[count - 1].location};
}

bool Executable::use_plan(TraceFamily& family) {
  auto [program, verdict] = family.program_for(canonical);
  if (!program) return false;
  if (keep_fused(std::move(program))) choice_.planned(std::move(verdict));
  return true;
}

bool Executable::add_plan(PyObject* varies, PyObject* encoded) {
  const TraceFamilyRef family = family_.lock();
  if (!family) return true;  // dropped meanwhile
  if (!family->add_plan(canonical, varies, encoded)) return false;
  use_plan(*family);
  return true;
}

bool Executable::find_program(bool wait, RunProvenance provenance, Interrupts& interrupts) {
  if (!met_) family_ = family_of(canonical);
  met_ = true;
  const TraceFamilyRef family = family_.lock();
  if (family && !choice_.is_rejected()) {
    if (use_plan(*family)) return true;
    if (family->wants_plan() && !ask_for_plan(*family, wait, provenance, interrupts)) return false;
  }
  return !wait || fused_ || ask_for_fused(true, provenance, interrupts);
}

bool Executable::ask_for_plan(TraceFamily& family, bool wait, RunProvenance provenance, Interrupts& interrupts) {
  const auto [first, last] = lines(provenance);
  const Owned capsule(executable_capsule(shared_from_this())), varies(capsule ? family.ask() : nullptr);
  const Owned result(varies ? PyObject_CallFunction(hooks.plan_trace, "OOOII", capsule.object, varies.object, wait ? Py_True : Py_False,
                                                    first, last)
                            : nullptr);
  if (result.object != Py_True) family.planning = false;
  if (!result) note_interrupted_compile(interrupts);
  return static_cast<bool>(result);
}

bool Executable::ask_to_tell(bool wait, RunProvenance provenance, Interrupts& interrupts) {
  asked_to_tell_ = true;
  met_ = false;
  // A run of the same trace inside of what finds the program may have rejected it.
  return find_program(false, provenance, interrupts) && ((fused_ && fused_->tells_finite) || ask_for_fused(wait, provenance, interrupts));
}

bool Executable::ask_for_fused(bool wait, RunProvenance provenance, Interrupts& interrupts) {
  if (!fused_) choice_.asked(family_.lock().get());
  const auto [first, last] = lines(provenance);
  const Owned capsule(executable_capsule(shared_from_this()));
  const Owned result(
      capsule ? PyObject_CallFunction(hooks.compile_trace, "OOII", capsule.object, wait ? Py_True : Py_False, first, last) : nullptr);
  if (result.object != Py_True) {
    ask_again();
    asked_to_tell_ = false;
  }
  if (!result) note_interrupted_compile(interrupts);
  return static_cast<bool>(result);
}

size_t Executable::entries_to_plan() {
  if (!to_plan_) to_plan_ = canonical.trace.entries_to_plan();
  return to_plan_;
}

bool Executable::worth_fusing() {
  if (is_one_call()) return false;  // which has its program
  const size_t entries = canonical.trace.entries.size();
  return stands_alone_ || entries <= kMostFused || entries_to_plan() <= kMostFused;
}

void Executable::has_run_before() {
  if (comes_back_) return;
  comes_back_ = true;
  choice_.has_run_before();
}

bool Executable::prepare(RunProvenance provenance, Interrupts& interrupts) {
  if (!fused_ && !find_program(true, provenance, interrupts)) return false;
  if (fused_) choice_.keep();
  return true;
}

bool Executable::run(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
                     Interrupts& interrupts, std::unique_ptr<BatchRun> prepared, const InputValues* values) {
  const Anomaly anomaly = settings.anomaly;
  if (anomaly == Anomaly::kOff) return run_tiers(inputs, spare, apart, outputs, provenance, interrupts, std::move(prepared), values, nullptr);
  FiniteWatch watch{harmless_, anomaly == Anomaly::kBackward};
  if (!run_tiers(inputs, spare, apart, outputs, provenance, interrupts, std::move(prepared), values, &watch)) return false;
  if (watch.complete && watch.found.empty()) return true;
  if (!check_finite(inputs, outputs, provenance, anomaly, interrupts)) return false;
  note_harmless(watch);
  return true;
}

void Executable::note_harmless(const FiniteWatch& watch) {
  if (!fused_ || watch.harmless != harmless_) return;  // another thread was first
  std::vector<Finite> known = harmless_ ? *harmless_ : std::vector<Finite>(fused_->instructions.size());
  for (auto [instruction, stored] : watch.found) known.at(instruction) = std::max(known.at(instruction), stored);
  if (!watch.found.empty()) harmless_ = std::make_shared<const std::vector<Finite>>(std::move(known));
}

bool Executable::check_finite(void* const* inputs, const std::vector<BufferRef>& outputs, RunProvenance provenance, Anomaly anomaly,
                              Interrupts& interrupts) try {
  const bool backward_only = anomaly == Anomaly::kBackward;
  if (given_infinite_.empty()) given_infinite_.assign(outputs.size(), false);
  const Operation* const sum = operation_of(hooks.accumulate);
  const auto may_be_of_pass = [&](Ref ref) {  // what cannot be is not read
    const auto at = static_cast<size_t>(ref);
    return provenance[at].forward != 0 || canonical.trace.entries[at].instance->operation == sum;
  };
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Ref output = canonical.outputs[k];
    if (output < 0 || !outputs[k] || (backward_only && !may_be_of_pass(output))) continue;
    const Finite found = finite_in(canonical.trace.type_of_ref(output), outputs[k]->data);
    if (found == Finite::kAll || (found == Finite::kInfinite && (backward_only || given_infinite_[k]))) continue;
    BadValueSearch search(canonical, inputs, outputs, provenance, backward_only);
    if (!search.is_of_pass(output)) continue;
    const Ref origin = search.origin_of(output, interrupts);
    if (origin >= 0 && search.raise(origin)) return false;
    given_infinite_[k] = found == Finite::kInfinite;
  }
  return true;
} catch (...) {
  set_error_of_exception();
  return false;
}

bool Executable::run_tiers(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
                           Interrupts& interrupts, std::unique_ptr<BatchRun> prepared, const InputValues* values, FiniteWatch* watch) {
  try {
    used = next_use();
    const Awake workers;
    const profile::Run profiled(*this, provenance);
    const Tier tier = settings.tier;
    const bool whole = tier == Tier::kFused || (tier == Tier::kAuto && settings.batching < Batching::kAtOnce);
    if (!fused_ && whole && !find_program(tier == Tier::kFused, provenance, interrupts)) return false;
    const auto tells = [this] { return fused_ && fused_->tells_finite; };
    // Op by op all results are read again, so that a program which was not faster is worth having here.
    if (watch && whole && !tells() && (fused_ || choice_.is_rejected()) && !asked_to_tell_ &&
        !ask_to_tell(tier == Tier::kFused, provenance, interrupts)) {
      return false;
    }
    const bool fused = fused_ && whole && (tier == Tier::kFused || (watch && tells()) || choice_.runs_program());
    // Unless the program ends early, inputs are not overwritten, as they are read again if a result is bad.
    if (watch && !(fused && fused_->tells_finite && !fused_->has_host)) spare = nullptr;
    TierChoice::Run timed(choice_, fused, !is_one_call() && !(watch && fused));
    bool alone = !fused;
    if (fused) {
      const ProgramRef program = fused_;
      if (!run_fused(program, alone, inputs, spare, outputs, provenance, interrupts, values, watch)) return false;
    } else if (!(tier == Tier::kAuto ? run_apart(inputs, spare, apart, outputs, provenance, interrupts, std::move(prepared))
                                     : run_unfused(inputs, spare, outputs, provenance, interrupts))) {
      return false;
    }
    if (tier != Tier::kAuto || !whole || alone == fused) return true;
    timed.done();
    if (choice_.is_rejected() && !tells()) fused_ = nullptr;
    return ask_if_due(provenance, interrupts);
  } catch (...) {
    outputs.clear();
    set_error_of_exception();
  }
  return false;
}

// False with a Python error set.
bool Executable::log_batches(const BatchPlan& plan, RunProvenance provenance) const {
  const auto [first, last] = lines(provenance);
  const auto count = static_cast<unsigned>(canonical.trace.entries.size()), launches = static_cast<unsigned>(plan.launches.size());
  const CallsAlone& alone = plan.alone;
  const Owned done(PyObject_CallFunction(hooks.log_batches, "IIIIIIII", first, last, count, launches, alone.large, alone.host, alone.only,
                                         alone.waiting));
  return static_cast<bool>(done);
}

// The plan is null if the calls are not batched.
bool Executable::find_batches(void* const* inputs, RunProvenance provenance, std::shared_ptr<const BatchPlan>* out) {
  const bool batching = settings.batching != Batching::kOff;
  std::shared_ptr<const BatchPlan>& plan = *out = batching ? batches_ : nullptr;
  if (plan && (plan->is_dated() || !plan->holds(inputs))) plan = nullptr;
  if (plan || !batching || stands_alone_) return true;
  for (const Entry& entry : canonical.trace.entries) {
    const Traits* traits = traits_of(entry.instance);
    if (!traits || (!traits->movement && !program_of(entry.instance))) return false;
  }
  if (!BatchPlan::make(canonical, inputs, provenance, &plan)) return false;
  stands_alone_ = !plan;
  if (plan && hooks.log_batches && !log_batches(*plan, provenance)) return false;
  if (plan && is_cached_ && (comes_back_ || executables.has_room(plan->memory(), is_long()))) {
    charge(static_cast<ptrdiff_t>(plan->memory()) - static_cast<ptrdiff_t>(batches_ ? batches_->memory() : 0));
    borrow(comes_back_);
    batches_ = plan;
  }
  comes_back_ = true;
  return true;
}

bool Executable::run_apart(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
                           Interrupts& interrupts, std::unique_ptr<BatchRun> prepared) {
  std::unique_ptr<BatchRun> run = std::move(prepared);
  std::shared_ptr<const BatchPlan> plan;
  if (!run) {
    if (!find_batches(inputs, provenance, &plan)) return note_interrupted_compile(interrupts), false;
    if (!plan) return run_unfused(inputs, spare, outputs, provenance, interrupts);
    if (profile::is_on()) profile::runs_apart(*this, provenance, plan);
  }
  const auto run_together = [&] {
    if (!run && !(run = BatchRun::make(canonical, plan, inputs))) return;
    {
      const Unlocked unlocked(!run->needs_python() && run->work() > kReleaseWork);
      run->execute(interrupts);
    }
    run->finish(apart, outputs);
  };
  if (!fails_together(run_together, interrupts)) return run || (note_interrupted_compile(interrupts), false);
  outputs.clear();
  return run_unfused(inputs, spare, outputs, provenance, interrupts);
}

std::unique_ptr<BatchRun> Executable::prepare_apart(void* const* inputs, RunProvenance provenance, bool* is_long) {
  constexpr int64_t kWorthThread = 500'000;  // estimated nanoseconds: a multiple of what it takes to wake a thread
  const bool usual = settings.tier == Tier::kAuto && settings.anomaly == Anomaly::kOff && !profile::is_on();
  if (!usual || is_short_ || stands_alone_ || (fused_ && choice_.runs_program())) return nullptr;
  used = next_use();
  std::shared_ptr<const BatchPlan> plan;
  if (!find_batches(inputs, provenance, &plan) || !plan) return nullptr;
  std::unique_ptr<BatchRun> run = BatchRun::make(canonical, std::move(plan), inputs);
  *is_long = run && !run->needs_python() && run->work() >= kWorthThread;
  is_short_ = run && !*is_long;
  return run;
}

bool Executable::ran_apart(int64_t nanoseconds, RunProvenance provenance, Interrupts& interrupts) {
  choice_.ran_single(nanoseconds);
  return ask_if_due(provenance, interrupts);
}

bool Executable::ask_if_due(RunProvenance provenance, Interrupts& interrupts) {
  if (!choice_.is_due()) return true;  // before operations are counted: most traces of dynamic programs run once
  const TraceFamilyRef family = family_.lock();
  return !choice_.should_compile(family.get(), batches_ ? entries_to_plan() : 0) || !worth_fusing() ||
         ask_for_fused(false, provenance, interrupts);
}

bool Executable::run_fused(const ProgramRef& ref, bool& alone, void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs,
                           RunProvenance provenance, Interrupts& interrupts, const InputValues* values, FiniteWatch* watch) {
  constexpr size_t kOnStack = 64, kShown = size_t{1} << 16;
  void* on_stack[kOnStack];
  std::vector<void*> on_heap;
  const Program& program = *ref;
  size_t count = program.output_nbytes.size();
  void** pointers = on_stack;
  if (count > kOnStack) {
    on_heap.resize(count);
    pointers = on_heap.data();
  }
  outputs.resize(count);
  size_t whole_from = SIZE_MAX;
  const bool told = watch && program.tells_finite && !program.has_host;
  std::optional<KernelError> overwritten;
  std::shared_ptr<KeptResults> kept;
  if (values && !watch && !program.derivable.empty()) {
    if (!inputs_) inputs_ = std::make_unique<InputWatch>();
    kept = inputs_->for_run(ref, *values);
  }
  if (spare) {
    for (auto [input, output] : program.donations) {
      Buffer* free = spare[input];
      // What a bad value was computed from is shown, unless it is large, as there may be no memory for a result beside it.
      if (!free || (watch && free->nbytes < kShown)) continue;
      ++free->references;
      free->note_overwritten();
      outputs[static_cast<size_t>(output)] = BufferRef(free);
      whole_from = program.overwrites_from;
    }
  }
  auto run = [&] {
    for (size_t i = 0; i < count; ++i) {
      if (!outputs[i]) outputs[i] = BufferRef(new_buffer(static_cast<size_t>(program.output_nbytes[i])));
      pointers[i] = outputs[i]->data;
    }
    try {
      program.run(inputs, pointers, interrupts, whole_from, nullptr, told ? watch : nullptr, kept.get());
    } catch (const KernelError& error) {
      if (interrupts.has_overwritten()) overwritten = error;
      throw;
    }
    if (watch) watch->complete = told;
  };
  try {
    if (!fails_together(run, interrupts)) {
      if (kept) inputs_->keep(std::move(kept), *values);
      return true;
    }
  } catch (const FiniteWatch::Suspicion&) {
    spare = nullptr;
  }
  outputs.clear();
  if (overwritten) return raise_kernel_error(program, *overwritten, {}), false;  // it cannot be repeated
  alone = true;
  return run_unfused(inputs, spare, outputs, provenance, interrupts);
}

bool Executable::run_unfused(void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs, RunProvenance provenance,
                             Interrupts& interrupts) {
  if (!unfused_) {
    for (const Entry& entry : canonical.trace.entries) {
      if (!traits_of(entry.instance) || (!only_moves(canonical.trace, entry) && !program_of(entry.instance))) {
        return note_interrupted_compile(interrupts), false;
      }
    }
  }
  // Another thread may have been first, and may be running by its plan now.
  if (!unfused_) {
    auto plan = std::make_unique<const UnfusedPlan>(canonical);
    charge(static_cast<ptrdiff_t>(plan->memory()));
    borrow(false);
    unfused_ = std::move(plan);
  }
  return UnfusedRun(canonical, *unfused_, inputs, spare, provenance, interrupts).run(outputs);
}

ExecutableRef executable_of(CanonicalTrace canonical, Coming coming) {
  if (coming == Coming::kOnly) return std::make_shared<Executable>(std::move(canonical));
  std::string key = canonical.key();
  ExecutableRef made = executables.find(key);
  if (!made) {
    made = std::make_shared<Executable>(std::move(canonical));
    executables.insert(std::move(key), made);
    made->is_cached_ = true;
  }
  if (coming == Coming::kAgain) made->has_run_before();
  made->borrow(coming == Coming::kAgain);
  executables.bound();
  return made;
}

bool has_room_for_executable(size_t entries) { return executables.has_room(entries * kEntryBytes, true); }

void clear_executables() {
  executables.drop_if([](const ExecutableRef& executable) { return !executable->is_fused() && executable.use_count() == 1; });
}

}  // namespace twofold
