#include <Python.h>

#include "batch_program.h"

#include "cache.h"
#include "executable.h"
#include "guard.h"
#include "owned.h"

namespace twofold {

BatchCounts batch_counts{};

namespace {

using BatchFamilyRef = std::shared_ptr<BatchFamily>;

void release_batch(PyObject* capsule) { delete static_cast<BatchFamilyRef*>(PyCapsule_GetPointer(capsule, kBatchCapsule)); }

PyObject* batch_capsule(const BatchFamilyRef& family) {
  auto owned = std::make_unique<BatchFamilyRef>(family);
  PyObject* capsule = PyCapsule_New(owned.get(), kBatchCapsule, guarded<release_batch>);
  if (capsule) static_cast<void>(owned.release());
  return capsule;
}

// A member as Python reads it.
PyObject* described(const Member& member) {
  const Owned operands(integer_tuple(member.operands));
  return operands ? PyTuple_Pack(3, member.instance->operation->python, member.instance->attributes->tuple, operands.object) : nullptr;
}

std::vector<int64_t> numbers_of(const std::vector<Member>& members, const std::vector<Type*>& inputs) {
  std::vector<int64_t> numbers;
  for (const Type* type : inputs) numbers.insert(numbers.end(), type->shape.begin(), type->shape.end());
  for (const Member& member : members) {
    const std::vector<int64_t>& own = member.instance->attributes->numbers;
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  return numbers;
}

}  // namespace

bool ask_for_batch(const BatchFamilyRef& family, BatchFamily::Wanted wanted, const std::vector<Member>& members,
                   const std::vector<uint32_t>& outputs, const std::vector<Type*>& inputs, int64_t count) {
  family->set_numbers(numbers_of(members, inputs));
  const Owned capsule(batch_capsule(family)), list(PyList_New(0)), returned(integer_tuple(outputs));
  const Owned types(types_tuple(inputs.data(), inputs.size())), flags(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
  if (!capsule || !list || !returned || !types || !flags) return false;
  for (const Member& member : members) {
    const Owned one(described(member));
    if (!one || PyList_Append(list.object, one.object) < 0) return false;
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    PyTuple_SET_ITEM(flags.object, static_cast<Py_ssize_t>(k), Py_NewRef(family->mask >> k & 1 ? Py_True : Py_False));
  }
  const Owned result(PyObject_CallFunction(hooks.plan_batch, "OOOOOLO", capsule.object, list.object, returned.object, types.object, flags.object,
                                           static_cast<long long>(count), wanted == BatchFamily::Wanted::kSaved ? Py_True : Py_False));
  if (result.object != Py_True) family->ask_again();
  return static_cast<bool>(result);
}

void BatchFamily::set_numbers(std::vector<int64_t> numbers) {
  numbers.insert(numbers.begin(), 0);
  values_ = std::move(numbers);
}

ProgramRef BatchFamily::program_for(int64_t count) {
  for (const auto& [number, program] : recent_) {
    if (number == count) return program;
  }
  if (values_.empty()) return nullptr;
  std::vector<int64_t> values = values_;  // a plan may run Python code, and another thread, that asks for another count
  values[0] = count;
  ProgramRef made = plans_.find([&values](const auto& plan) { return plan->instantiate(values.data()); });
  if (!made) return nullptr;
  auto grown = static_cast<int64_t>(made->memory());
  ProgramRef oldest;  // it may end in Python code, which may ask for a program
  if (recent_.size() == kRecent) {
    oldest = std::move(recent_.front().second);
    grown -= static_cast<int64_t>(oldest->memory());
    recent_.erase(recent_.begin());
  }
  recent_.emplace_back(count, made);
  charge_op_instances(grown);
  return made;
}

BatchFamily::Wanted BatchFamily::wanted(int64_t count, int64_t worth) {
  calls_ += count;
  const bool at_once = settings.batching >= Batching::kAtOnce;
  if (asked_ || !plans_.may_add() || (calls_ < worth / kLooksBefore && !at_once)) return Wanted::kNothing;
  if (calls_ < worth && !at_once) return std::exchange(looked_, true) ? Wanted::kNothing : Wanted::kSaved;
  ++plans_.attempts;
  asked_ = true;
  return Wanted::kMade;
}

bool BatchFamily::add_plan(PyObject* encoded) {
  if (encoded == Py_None) return true;  // there is none, and it is not asked for again
  asked_ = false;
  auto made = std::make_shared<ProgramTemplate>();
  if (!made->read(encoded)) return false;
  charge_op_instances(static_cast<int64_t>(made->memory()));
  plans_.add(std::move(made));
  ++batch_counts.plans;
  return true;
}

size_t BatchFamily::memory() const {
  size_t total = sizeof *this + memory_of(recent_) + memory_of(values_);
  for (const auto& plan : plans_.list) total += plan->memory();
  for (const auto& [count, program] : recent_) total += program->memory();
  return total;
}

bool batch_program(OpInstance* instance, uint64_t mask, int64_t count, ProgramRef* out) {
  BatchFamilyRef family;
  for (const BatchFamilyRef& known : instance->batches) {
    if (known->mask == mask) family = known;
  }
  if (!family) instance->batches.push_back(family = std::make_shared<BatchFamily>(mask));
  *out = family->program_for(count);
  const BatchFamily::Wanted wanted = *out ? BatchFamily::Wanted::kNothing : family->wanted(count);
  if (wanted == BatchFamily::Wanted::kNothing) return true;
  std::vector<Ref> operands(instance->inputs.size());
  for (size_t k = 0; k < operands.size(); ++k) operands[k] = ~static_cast<Ref>(k);
  std::vector<Member> members{{OpInstanceRef(instance), std::move(operands)}};
  if (!ask_for_batch(family, wanted, members, {0}, instance->inputs, count)) return false;
  *out = family->program_for(count);
  return true;
}

BatchFamily* batch_in(PyObject* capsule) {
  auto* held = static_cast<BatchFamilyRef*>(PyCapsule_GetPointer(capsule, kBatchCapsule));
  return held ? held->get() : nullptr;
}

}  // namespace twofold
