#include <Python.h>

#include "trace_family.h"

#include "cache.h"
#include "executable.h"

namespace twofold {

TraceFamilyCounts trace_family_counts{};

namespace {

constexpr size_t kMostEntries = 4096;  // longer traces seldom repeat in other sizes, and take long to plan

auto& families = *new Cache<TraceFamily>("trace families", 1);
const bool holds = (add_holder([] { return families.drop_oldest(); }), true);

std::vector<int64_t> numbers_of(const CanonicalTrace& canonical) {
  std::vector<int64_t> numbers;
  for (const Type* type : canonical.trace.leaves) numbers.insert(numbers.end(), type->shape.begin(), type->shape.end());
  for (const Entry& entry : canonical.trace.entries) {
    const auto& own = entry.instance->attributes->numbers;
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  return numbers;
}

// Equal for traces of one family.
uint64_t family_hash(const CanonicalTrace& canonical) {
  uint64_t hash = hash_bytes(canonical.trace.refs.data(), canonical.trace.refs.size() * sizeof(Ref));
  for (const Entry& entry : canonical.trace.entries) {
    hash = (hash ^ entry.instance->operation->id) * 0x9E3779B97F4A7C15ull;
    hash = (hash ^ (hash >> 32) ^ entry.instance->attributes->skeleton_hash) * 0x9E3779B97F4A7C15ull;
  }
  for (const Type* type : canonical.trace.leaves) {
    hash = (hash ^ (type->shape.size() * 512 + type->dtype * 2 + type->weak)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
  }
  return hash ^ hash_bytes(canonical.outputs.data(), canonical.outputs.size() * sizeof(Ref));
}

bool same_kind(const Type* a, const Type* b) {
  return a->dtype == b->dtype && a->weak == b->weak && a->shape.size() == b->shape.size();
}

}  // namespace

TraceFamily::TraceFamily(const CanonicalTrace& first)
    : first_(first), numbers_(numbers_of(first)), varies_(numbers_.size(), template_mode == Templates::kAtOnce) {
  varies_any_ = template_mode == Templates::kAtOnce && !numbers_.empty();
}

size_t TraceFamily::memory() const {
  size_t total = sizeof *this + first_.memory() + memory_of(numbers_);
  for (const auto& plan : plans_.list) total += sizeof(Plan) + memory_of(plan->numbers) + plan->program.memory();
  return total;
}

bool TraceFamily::is_like(const CanonicalTrace& other) const {
  const Trace &a = first_.trace, &b = other.trace;
  if (a.entries.size() != b.entries.size() || a.refs != b.refs || first_.outputs != other.outputs) return false;
  if (!std::equal(a.leaves.begin(), a.leaves.end(), b.leaves.begin(), b.leaves.end(), same_kind)) return false;
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), [](const Entry& x, const Entry& y) {
    if (x.instance == y.instance) return true;
    return x.count == y.count && x.instance->operation == y.instance->operation &&
           x.instance->attributes->skeleton == y.instance->attributes->skeleton;
  });
}

void TraceFamily::meet(const CanonicalTrace& member) {
  const std::vector<int64_t> numbers = numbers_of(member);
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] == numbers_[k] || varies_[k]) continue;
    varies_[k] = varies_any_ = true;
  }
}

std::pair<ProgramRef, std::shared_ptr<Verdict>> TraceFamily::program_for(const CanonicalTrace& member) {
  if (plans_.list.empty()) return {};
  const std::vector<int64_t> numbers = numbers_of(member);
  std::vector<int64_t> given;
  std::shared_ptr<Verdict> verdict;
  ProgramRef program = plans_.find([&](const std::shared_ptr<const Plan>& plan) -> ProgramRef {
    given.clear();
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (plan->varies[k]) given.push_back(numbers[k]);
      else if (numbers[k] != plan->numbers[k]) return nullptr;
    }
    verdict = plan->verdict;
    return plan->program.instantiate(given.data());
  });
  trace_family_counts.uses += program != nullptr;
  return {std::move(program), std::move(verdict)};
}

PyObject* TraceFamily::ask() {
  PyObject* mask = PyTuple_New(static_cast<Py_ssize_t>(varies_.size()));
  for (size_t k = 0; mask && k < varies_.size(); ++k) {
    PyTuple_SET_ITEM(mask, static_cast<Py_ssize_t>(k), Py_NewRef(varies_[k] ? Py_True : Py_False));
  }
  asked_ = varies_;
  ++plans_.attempts;
  planning = mask != nullptr;
  return mask;
}

bool TraceFamily::add_plan(const CanonicalTrace& member, PyObject* varies, PyObject* encoded) {
  std::vector<bool> mask;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(varies); ++k) mask.push_back(PyTuple_GET_ITEM(varies, k) == Py_True);
  // The executable may have joined another family since the plan was asked for, as when kernels begin to report what is not finite.
  if (mask == asked_) planning = false;
  if (encoded == Py_None) return true;
  auto made = std::make_shared<Plan>();
  made->varies = std::move(mask);
  made->numbers = numbers_of(member);
  if (made->varies.size() != made->numbers.size()) {
    PyErr_SetString(PyExc_ValueError, "a plan of a trace needs to know of each of its integers whether it varies");
    return false;
  }
  if (!made->program.read(encoded)) return false;
  families.charge(made->program.memory() + memory_of(made->numbers));
  plans_.add(std::move(made));
  ++trace_family_counts.plans;
  families.bound();
  return true;
}

TraceFamilyRef family_of(const CanonicalTrace& canonical) {
  const size_t entries = canonical.trace.entries.size();
  if (template_mode == Templates::kOff || entries < 2 || entries > kMostEntries) return nullptr;
  for (const Type* type : canonical.trace.leaves) {
    if (type->unknown) return nullptr;
  }
  // Of different traces with the same hash only the first has a family.
  const uint64_t hash = family_hash(canonical);
  std::string key(reinterpret_cast<const char*>(&hash), sizeof hash);
  if (settings.tells_finite) key += 'f';  // kernels of earlier plans do not report values that are not finite
  if (TraceFamilyRef found = families.find(key)) {
    if (!found->is_like(canonical)) return nullptr;
    found->meet(canonical);
    return found;
  }
  auto made = std::make_shared<TraceFamily>(canonical);
  families.insert(std::move(key), made);
  families.bound();
  return made;
}

}  // namespace twofold
