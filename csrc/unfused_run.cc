#include <Python.h>

#include "unfused_run.h"

#include <algorithm>
#include <cstring>

#include "bad_value.h"
#include "cache.h"
#include "executable.h"
#include "out_of_memory.h"
#include "owned.h"
#include "profile.h"
#include "recompute.h"

namespace twofold {
namespace {

constexpr int64_t kEntryNanoseconds = 300;  // of a call, beside its kernel
constexpr double kLongestTail = 5e8;        // nanoseconds that may be uninterruptible
constexpr int64_t kSmall = 1 << 20;         // bytes that a part of them may keep alive

// The operand whose buffer may be donated to the result of a program; -1 if there is none.
int32_t given_operand(const Program& program) { return program.donations.empty() ? -1 : program.donations[0].first; }

// Whether a call reads the operand in one position only: a program may overwrite it where it reads it there.
bool is_read_once(const Trace& trace, const Entry& entry, int32_t position) {
  const Ref* refs = trace.inputs(entry);
  return std::count(refs, refs + entry.count, refs[position]) == 1;
}

// Whether the result of a step may reuse the buffer of an input that is dead afterwards.
bool takes_leaf(const CanonicalTrace& canonical, const UnfusedPlan& plan, size_t step) {
  if (plan.kinds[plan.steps[step]] != UnfusedPlan::Step::kCall) return false;
  const Entry& entry = canonical.trace.entries[plan.steps[step]];
  const int32_t given = given_operand(*entry.instance->program);
  const Ref ref = given < 0 ? 0 : canonical.trace.inputs(entry)[given];
  return ref < 0 && plan.last_read[static_cast<size_t>(~ref)] == step && is_read_once(canonical.trace, entry, given);
}

// The buffer of the result of a step of the tail: a new one, which the run returns or which is freed before
// its end; that of an input; or that of another value, which is dead or of which it is a part.
enum class Memory : uint8_t { kStays, kPassing, kOfLeaf, kOfValue };

// Chooses them from the last step to the first.
class TailMemory {
 public:
  TailMemory(const CanonicalTrace& canonical, const UnfusedPlan& plan)
      : canonical_(canonical), plan_(plan), values_(canonical.trace.entries.size()) {
    for (uint32_t step = 0; step < plan.steps.size(); ++step) {
      Value& made = values_[plan.steps[step]];
      made.again = made.step != UINT32_MAX;
      made.step = step;
      if (plan.kinds[plan.steps[step]] != UnfusedPlan::Step::kPart) continue;
      made.shares = true;
      const Entry& entry = canonical.trace.entries[plan.steps[step]];
      value(canonical.trace.inputs(entry)[entry.instance->traits->movement->operands[0]]).shares = true;
    }
    for (Ref ref : canonical.outputs) {
      if (ref >= 0) value(ref).read = value(ref).stays = true;
    }
  }

  // For the step before those already visited.
  Memory of(size_t step) {
    const Entry& entry = canonical_.trace.entries[plan_.steps[step]];
    const Value& made = values_[plan_.steps[step]];
    const Ref* refs = canonical_.trace.inputs(entry);
    const UnfusedPlan::Step kind = plan_.kinds[plan_.steps[step]];
    const int32_t given = kind == UnfusedPlan::Step::kCall ? given_operand(*entry.instance->program) : -1;
    const bool stays = made.stays && !made.again;
    Memory found = stays ? Memory::kStays : Memory::kPassing;
    if (kind == UnfusedPlan::Step::kPart) {
      found = Memory::kOfValue;
    } else if (takes_leaf(canonical_, plan_, step)) {
      found = Memory::kOfLeaf;
    } else if (given >= 0 && refs[given] >= 0 && is_free(value(refs[given])) && is_read_once(canonical_.trace, entry, given)) {
      found = Memory::kOfValue;
      value(refs[given]).stays = stays;
    }
    for (uint32_t k = 0; k < entry.count; ++k) {
      if (refs[k] >= 0) value(refs[k]).read = true;
    }
    return found;
  }

 private:
  struct Value {
    uint32_t step = UINT32_MAX;  // that computes it last
    bool again = false;          // it is computed several times
    bool read = false;           // later than the visited step
    bool stays = false;          // its memory is part of an output
    bool shares = false;         // it is a part of another value, or another is a part of it
  };

  Value& value(Ref ref) { return values_[static_cast<size_t>(ref)]; }
  // Whether a value has a buffer that is dead after the visited step.
  bool is_free(const Value& value) const { return !value.read && !value.again && !value.shares && !takes_leaf(canonical_, plan_, value.step); }

  const CanonicalTrace& canonical_;
  const UnfusedPlan& plan_;
  std::vector<Value> values_;  // by entry
};

}  // namespace

UnfusedPlan::UnfusedPlan(const CanonicalTrace& canonical) : steps(steps_of(canonical)) {
  const Trace& trace = canonical.trace;
  find_parts(canonical);
  uses.assign(steps.size(), 0);
  last_read.assign(trace.leaves.size(), 0);
  std::vector<uint32_t> made(trace.entries.size());  // the step that computes each entry
  for (uint32_t step = 0; step < steps.size(); ++step) {
    const Entry& entry = trace.entries[steps[step]];
    made[steps[step]] = step;
    for (uint32_t k = 0; k < entry.count; ++k) {
      const Ref ref = trace.inputs(entry)[k];
      if (ref >= 0) ++uses[made[static_cast<size_t>(ref)]];
      else last_read[static_cast<size_t>(~ref)] = step;
    }
  }
  for (Ref ref : canonical.outputs) {
    if (ref >= 0) ++uses[made[static_cast<size_t>(ref)]];
  }
  find_tail(canonical);
}

size_t UnfusedPlan::memory() const { return memory_of(steps) + memory_of(kinds) + memory_of(uses) + memory_of(last_read); }

bool only_moves(const Trace& trace, const Entry& entry) {
  const std::optional<Movement>& movement = entry.instance->traits->movement;
  return movement && (movement->number < 0 || trace.inputs(entry)[movement->number] < 0);
}

// A result of the run has memory of its own.
void UnfusedPlan::find_parts(const CanonicalTrace& canonical) {
  const Trace& trace = canonical.trace;
  kinds.assign(trace.entries.size(), Step::kCall);
  std::vector<int64_t> kept(trace.entries.size());  // by entry: bytes that it keeps alive
  std::vector<bool> is_output(trace.entries.size());
  for (Ref ref : canonical.outputs) {
    if (ref >= 0) is_output[static_cast<size_t>(ref)] = true;
  }
  for (size_t i = 0; i < trace.entries.size(); ++i) {
    const Entry& entry = trace.entries[i];
    kept[i] = entry.instance->output->nbytes;
    if (!only_moves(trace, entry)) continue;
    kinds[i] = Step::kCopied;
    const Movement& movement = *entry.instance->traits->movement;
    const Ref source = movement.joins ? -1 : trace.inputs(entry)[movement.operands[0]];
    if (source < 0 || is_output[i]) continue;
    const int64_t whole = kept[static_cast<size_t>(source)];
    if (whole > std::max(kSmall, 2 * kept[i])) continue;
    kinds[i] = Step::kPart;
    kept[i] = whole;
  }
}

// The longest tail that is worth it and short enough. Values that are live at its start need buffers of their own, so
// each extension must save as much.
void UnfusedPlan::find_tail(const CanonicalTrace& canonical) {
  const Trace& trace = canonical.trace;
  TailMemory memory(canonical, *this);
  int64_t saved = 0, passing = 0, scratch = 0, gain = 0;
  double work = 0;
  for (size_t step = steps.size(); step-- > 0;) {
    const Entry& entry = trace.entries[steps[step]];
    if (kinds[steps[step]] == Step::kCall) {
      const Program& program = *entry.instance->program;
      work += static_cast<double>(program.total_work);
      const Traits* traits = traits_of(entry.instance);
      if (!traits) return PyErr_Clear();
      if (traits->checks || program.has_host || !program.nested.empty() || work > kLongestTail) return;
      scratch = std::max(scratch, program.arena_bytes);
    }
    const Memory result = memory.of(step);
    if (result == Memory::kPassing) passing += entry.instance->output->nbytes;
    if (result == Memory::kOfLeaf) saved += entry.instance->output->nbytes;
    if (result != Memory::kOfLeaf || saved - passing - scratch < gain) continue;
    gain = saved - passing - scratch;
    tail = step;
    tail_scratch = scratch;
  }
}

UnfusedRun::UnfusedRun(const CanonicalTrace& canonical, const UnfusedPlan& plan, void* const* inputs, Buffer* const* spare,
                       RunProvenance provenance, Interrupts& interrupts)
    : canonical_(canonical),
      plan_(plan),
      inputs_(inputs),
      spare_(spare),
      provenance_(provenance),
      interrupts_(interrupts),
      left_(canonical.trace.entries.size()),
      values_(canonical.trace.entries.size()) {}

UnfusedRun::FirstError::~FirstError() {
  Py_XDECREF(type_);
  Py_XDECREF(value_);
  Py_XDECREF(traceback_);
}

void UnfusedRun::FirstError::keep() {
  if (type_) {
    PyErr_Clear();
  } else {
    PyErr_Fetch(&type_, &value_, &traceback_);
  }
}

bool UnfusedRun::FirstError::restore() {
  if (!type_) return false;
  PyErr_Restore(type_, value_, traceback_);
  type_ = value_ = traceback_ = nullptr;
  return true;
}

bool UnfusedRun::run(std::vector<BufferRef>& outputs) {
  const Trace& trace = canonical_.trace;
  for (size_t step = 0; step < plan_.steps.size(); ++step) {
    const Entry& entry = entry_of(step);
    left_[plan_.steps[step]] = plan_.uses[step];
    if (step == plan_.tail && spare_ && !error_) begin_tail();  // a value that then is not computed stays what it was
    if (point(entry) && !run_step(step)) return false;
    const Ref* refs = trace.inputs(entry);
    for (uint32_t k = 0; k < entry.count; ++k) {
      if (refs[k] >= 0 && --left_[static_cast<size_t>(refs[k])] == 0) values_[static_cast<size_t>(refs[k])] = BufferRef();
    }
    interrupts_.after(kEntryNanoseconds);
  }
  for (Ref ref : canonical_.outputs) outputs.push_back(values_[static_cast<size_t>(ref)]);
  return !error_.restore();
}

bool UnfusedRun::point(const Entry& entry) {
  const Ref* refs = canonical_.trace.inputs(entry);
  pointers_.clear();
  for (uint32_t k = 0; k < entry.count; ++k) {
    const bool is_leaf = refs[k] < 0;
    if (!is_leaf && !values_[static_cast<size_t>(refs[k])]) return false;
    pointers_.push_back(is_leaf ? inputs_[~refs[k]] : values_[static_cast<size_t>(refs[k])]->data);
  }
  return true;
}

bool UnfusedRun::run_step(size_t step) {
  const size_t index = plan_.steps[step];
  const Program* program = canonical_.trace.entries[index].instance->program.get();
  BufferRef result;  // until an error is raised: it may be the location of an operand
  try {
    if (plan_.kinds[index] != UnfusedPlan::Step::kCall) {
      values_[index] = moved(step);
      return true;
    }
    size_t whole_from = SIZE_MAX;
    result = result_of(step, *program, &whole_from);
    void* output = result->data;
    if (profile::is_on()) profile::context.entry = static_cast<int32_t>(index);
    program->run(pointers_.data(), &output, interrupts_, whole_from, scratch_ ? static_cast<char*>(scratch_->data) : nullptr);
    values_[index] = std::move(result);
    return true;
  } catch (const KernelError& found) {
    const Entry& entry = canonical_.trace.entries[index];
    const Owned operands(operands_of(canonical_.trace, entry, pointers_.data(), provenance_));
    raise_kernel_error(*program, found, {entry.instance, provenance_[index], operands.object});
    error_.keep();
    return true;
  } catch (const OutOfMemory& missing) {
    const OpInstance& called = *canonical_.trace.entries[index].instance;
    const bool of_result = missing.nbytes == static_cast<size_t>(called.output->nbytes);
    raise_out_of_memory(missing.nbytes, called.operation->name + (of_result ? ", result " : ", on the way to ") + called.output->text(),
                        provenance_[index]);
    return false;
  } catch (const PythonError&) {
    return !interrupts_.raised() && is_worded_error() && fail(index);
  }
}

// A host function raised an error of operations: entries that do not depend on it are computed all the same.
bool UnfusedRun::fail(size_t index) {
  const Entry& entry = canonical_.trace.entries[index];
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Owned operands(operands_of(canonical_.trace, entry, pointers_.data(), provenance_));
  PyErr_Restore(type, value, traceback);
  locate_host_error({entry.instance, provenance_[index], operands.object});
  error_.keep();
  return true;
}

// The result of a call that only moves data.
BufferRef UnfusedRun::moved(size_t step) {
  const Entry& entry = entry_of(step);
  const Movement& movement = *entry.instance->traits->movement;
  int64_t number = 0;
  if (movement.number >= 0) std::memcpy(&number, pointers_[static_cast<size_t>(movement.number)], sizeof number);
  char* first = static_cast<char*>(pointers_[movement.operands[0]]) + movement.offset + movement.step * number;
  const auto nbytes = static_cast<size_t>(entry.instance->output->nbytes);
  if (plan_.kinds[plan_.steps[step]] == UnfusedPlan::Step::kPart) {
    const Ref source = canonical_.trace.inputs(entry)[movement.operands[0]];
    return BufferRef(part_of_buffer(values_[static_cast<size_t>(source)].get(), first, nbytes));
  }
  BufferRef made = own_memory(step);
  if (!movement.joins) {
    copy_memory(made->data, first, nbytes);
    return made;
  }
  copies_.clear();
  char* target = static_cast<char*>(made->data);
  for (uint32_t operand : movement.operands) {
    copies_.push_back({target, static_cast<const char*>(pointers_[operand]), static_cast<size_t>(entry.instance->inputs[operand]->nbytes)});
    target += copies_.back().nbytes;
  }
  copy_parts(copies_, interrupts_);
  return made;
}

// The buffer of the result; from instruction `whole_from` on the program overwrites an operand.
BufferRef UnfusedRun::result_of(size_t step, const Program& program, size_t* whole_from) {
  if (BufferRef taken = overwritten(step, program)) {
    *whole_from = program.overwrites_from;
    return taken;
  }
  return own_memory(step);
}

BufferRef UnfusedRun::own_memory(size_t step) {
  if (held_ && ready_[step - plan_.tail]) return std::move(ready_[step - plan_.tail]);
  return BufferRef(new_buffer(static_cast<size_t>(entry_of(step).instance->output->nbytes)));
}

// The buffer of a dead operand that the result may reuse; null if there is none.
BufferRef UnfusedRun::overwritten(size_t step, const Program& program) const {
  const int32_t given = given_operand(program);
  if (given < 0) return BufferRef();
  const Ref ref = canonical_.trace.inputs(entry_of(step))[given];
  if (ref >= 0) {
    const BufferRef& value = values_[static_cast<size_t>(ref)];
    return left_[static_cast<size_t>(ref)] == 1 && value->references == 1 && !value->whole ? value : BufferRef();
  }
  Buffer* leaf = held_ && takes_leaf(canonical_, plan_, step) ? spare_[~ref] : nullptr;
  if (!leaf) return BufferRef();
  ++leaf->references;
  leaf->note_overwritten();
  return BufferRef(leaf);
}

// The memory of the tail is allocated before anything is overwritten, so that it cannot fail for lack of it.
void UnfusedRun::begin_tail() {
  const Trace& trace = canonical_.trace;
  TailMemory results(canonical_, plan_);
  std::vector<size_t> wanted;
  int64_t saved = 0, passing = plan_.tail_scratch;
  for (size_t i = plan_.steps.size(); i-- > plan_.tail;) {
    const Entry& entry = entry_of(i);
    const Memory result = results.of(i);
    if (result == Memory::kOfValue) continue;
    if (result == Memory::kOfLeaf && spare_[~trace.inputs(entry)[given_operand(*entry.instance->program)]]) {
      saved += entry.instance->output->nbytes;
      continue;
    }
    if (result == Memory::kPassing) passing += entry.instance->output->nbytes;
    wanted.push_back(i);
  }
  if (saved == 0 || passing > saved) return;
  std::vector<BufferRef> ready(plan_.steps.size() - plan_.tail);
  for (size_t i : wanted) ready[i - plan_.tail] = BufferRef(new_buffer(static_cast<size_t>(entry_of(i).instance->output->nbytes)));
  if (plan_.tail_scratch > 0) scratch_ = BufferRef(new_buffer(static_cast<size_t>(plan_.tail_scratch)));
  ready_ = std::move(ready);
  held_.emplace(interrupts_);
}

}  // namespace twofold
