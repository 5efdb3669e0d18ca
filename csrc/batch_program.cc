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

// Asks Python for a plan; false with a Python error set.
bool ask(Signature* signature, const BatchFamilyRef& family, int64_t count) {
  const Owned capsule(batch_capsule(family));
  if (!capsule) return false;
  const Owned types(types_tuple(signature->inputs.data(), signature->inputs.size()));
  const Owned flags(PyTuple_New(static_cast<Py_ssize_t>(signature->inputs.size())));
  for (size_t k = 0; flags && k < signature->inputs.size(); ++k) {
    PyTuple_SET_ITEM(flags.object, static_cast<Py_ssize_t>(k), Py_NewRef(family->mask >> k & 1 ? Py_True : Py_False));
  }
  const Owned result(types && flags ? PyObject_CallFunction(hooks.plan_batch, "OOOOOL", capsule.object, signature->operation->python,
                                                            signature->attributes->tuple, types.object, flags.object,
                                                            static_cast<long long>(count))
                                    : nullptr);
  if (result.object != Py_True) family->ask_again();
  return static_cast<bool>(result);
}

}  // namespace

PyObject* batch_capsule(BatchFamilyRef family) {
  auto owned = std::make_unique<BatchFamilyRef>(std::move(family));
  PyObject* capsule = PyCapsule_New(owned.get(), kBatchCapsule, guarded<release_batch>);
  if (capsule) static_cast<void>(owned.release());
  return capsule;
}

ProgramRef BatchFamily::program_for(int64_t count) {
  for (const auto& [number, program] : recent_) {
    if (number == count) return program;
  }
  ProgramRef made = plans_.find([count](const auto& plan) { return plan->instantiate(&count); });
  if (!made) return nullptr;
  auto grown = static_cast<int64_t>(made->memory());
  if (recent_.size() == kRecent) {
    grown -= static_cast<int64_t>(recent_.front().second->memory());
    recent_.erase(recent_.begin());
  }
  recent_.emplace_back(count, made);
  charge_signatures(grown);
  return made;
}

bool BatchFamily::wants_plan(int64_t count, int64_t worth) {
  calls_ += count;
  if (asked_ || calls_ < (settings.batching == Batching::kAtOnce ? 1 : worth) || !plans_.may_add()) return false;
  ++plans_.attempts;
  return asked_ = true;
}

bool BatchFamily::add_plan(PyObject* encoded) {
  if (encoded == Py_None) return true;  // there is none, and it is not asked for again
  asked_ = false;
  auto made = std::make_shared<ProgramTemplate>();
  if (!made->read(encoded)) return false;
  charge_signatures(static_cast<int64_t>(made->memory()));
  plans_.add(std::move(made));
  ++batch_counts.plans;
  return true;
}

size_t BatchFamily::memory() const {
  size_t total = sizeof *this + memory_of(recent_);
  for (const auto& plan : plans_.list) total += plan->memory();
  for (const auto& [count, program] : recent_) total += program->memory();
  return total;
}

bool batch_program(Signature* signature, uint64_t mask, int64_t count, ProgramRef* out) {
  BatchFamilyRef family;
  for (const BatchFamilyRef& known : signature->batches) {
    if (known->mask == mask) family = known;
  }
  if (!family) signature->batches.push_back(family = std::make_shared<BatchFamily>(mask));
  *out = family->program_for(count);
  if (*out || !family->wants_plan(count)) return true;
  if (!ask(signature, family, count)) return false;
  *out = family->program_for(count);
  return true;
}

BatchFamily* batch_in(PyObject* capsule) {
  auto* held = static_cast<BatchFamilyRef*>(PyCapsule_GetPointer(capsule, kBatchCapsule));
  return held ? held->get() : nullptr;
}

}  // namespace twofold
