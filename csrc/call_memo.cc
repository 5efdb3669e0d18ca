#include <Python.h>

#include "call_memo.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "owned.h"
#include "tensor.h"

namespace twofold {
namespace {

constexpr size_t kMostCalls = 16, kMostOperands = 128;
constexpr int kMostLevels = 4;

// Words of keys.
namespace Word {
enum : uint64_t {
  kTensor = 1, kView, kSame, kNone, kFalse, kTrue, kEllipsis, kInteger, kFloat, kString, kDtype, kTuple, kList, kSlice, kKeyword,
  kIndices, kPosition, kRange, kWhole, kNumber,  // of an index whose positions are free
};
}

Cache<CallRecipe>& recipes() {
  static auto& cache = *[] {
    auto* made = new Cache<CallRecipe>("calls", 1);
    add_holder([] { return recipes().drop_oldest(); });
    return made;
  }();
  return cache;
}

std::string bytes_of(const CallKey& key) { return {reinterpret_cast<const char*>(key.words().data()), key.words().size_bytes()}; }

bool is_same_number(PyObject* a, PyObject* b) {
  return a == b || (PyLong_CheckExact(a) && PyLong_CheckExact(b) && PyObject_RichCompareBool(a, b, Py_EQ) == 1);
}

bool is_number(PyObject* object) { return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object); }

}  // namespace

CallKey::CallKey(const CallMemo& function) {
  add(function.number_);
  add(CallMemo::generation);
}

CallKey::~CallKey() {
  for (PyObject* object : named()) Py_DECREF(object);
  for (PyObject* object : tensors()) Py_DECREF(object);
  for (PyObject* object : free()) Py_DECREF(object);
}

bool CallKey::name(uint64_t kind, PyObject* object) {
  add(kind);
  add(reinterpret_cast<uint64_t>(object));
  named_[named_count_++] = Py_NewRef(object);
  return true;
}

bool CallKey::read_items(uint64_t kind, PyObject* const* items, Py_ssize_t count, int depth) {
  if (depth >= kMostLevels) return false;  // a list may hold itself
  add(kind);
  add(static_cast<uint64_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!read_one(items[i], depth + 1)) return false;
  }
  return true;
}

bool CallKey::read_one(PyObject* object, int depth) {
  if (!has_room()) return false;
  if (is_tensor(object)) {
    Value* value = reinterpret_cast<PyTensor*>(object)->value;
    if (is_symbolic(value)) return false;
    for (size_t i = 0; i < tensors_count_; ++i) {
      if (tensors_[i] != object) continue;
      add(Word::kSame);
      add(i);
      return true;
    }
    const auto* tensor = reinterpret_cast<PyTensor*>(object);
    add(tensor->view ? Word::kView : Word::kTensor);
    add(tensor->standard);
    add(reinterpret_cast<uint64_t>(value->type));
    tensors_[tensors_count_++] = Py_NewRef(object);
    return true;
  }
  if (PyBool_Check(object)) {
    add(object == Py_True ? Word::kTrue : Word::kFalse);
    return true;
  }
  if (PyLong_CheckExact(object)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    add(Word::kInteger);
    add(static_cast<uint64_t>(number));
    return !overflow;
  }
  if (object == Py_None || object == Py_Ellipsis) {
    add(object == Py_None ? Word::kNone : Word::kEllipsis);
    return true;
  }
  if (PyFloat_CheckExact(object)) {
    add(Word::kFloat);
    add(std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(object)));
    return true;
  }
  if (PyUnicode_CheckExact(object)) return PyUnicode_CHECK_INTERNED(object) && name(Word::kString, object);
  if (PyTuple_CheckExact(object) || Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(hooks.size_class)) {
    return read_items(Word::kTuple, &PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object), depth);
  }
  if (PyList_CheckExact(object)) {
    return read_items(Word::kList, reinterpret_cast<PyListObject*>(object)->ob_item, PyList_GET_SIZE(object), depth);
  }
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    PyObject* parts[] = {slice->start, slice->stop, slice->step};
    return read_items(Word::kSlice, parts, 3, depth);
  }
  return Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(hooks.dtype_class) && name(Word::kDtype, object);
}

bool CallKey::read(PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < positional + keywords; ++i) {
    if (i >= positional) {
      PyObject* keyword = PyTuple_GET_ITEM(names, i - positional);
      if (!PyUnicode_CHECK_INTERNED(keyword) || !has_room()) return false;
      name(Word::kKeyword, keyword);
    }
    if (!read_one(arguments[i], 0)) return false;
  }
  return true;
}

bool CallKey::add_free(PyObject* owned) {
  if (!owned) return PyErr_Clear(), false;
  if (free_count_ == kMostFree) return Py_DECREF(owned), false;
  free_[free_count_++] = owned;
  return true;
}

// One item of an index, for an axis of this size.
bool CallKey::read_index(PyObject* item, int64_t size) {
  if (!has_room()) return false;
  if (PySlice_Check(item)) {
    auto* slice = reinterpret_cast<PySliceObject*>(item);
    Py_ssize_t start, stop, step;
    for (PyObject* part : {slice->start, slice->stop, slice->step}) {
      if (part != Py_None && !PyLong_CheckExact(part)) return false;
    }
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) return PyErr_Clear(), false;
    if (step != 1) return false;
    const Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
    add(count == size ? Word::kWhole : Word::kRange);
    if (count == size) return true;
    add(static_cast<uint64_t>(count));
    return add_free(PyLong_FromSsize_t(start));
  }
  const Owned integer(python_integer(item));
  int overflow = 0;
  const long long position = integer ? PyLong_AsLongLongAndOverflow(integer.object, &overflow) : 0;
  if (!integer || overflow || position < -size || position >= size) return false;
  add(Word::kPosition);
  return add_free(position < 0 ? PyLong_FromLongLong(position + size) : Py_NewRef(integer.object));
}

bool CallKey::read_indices(PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  if (names || positional < 2 || positional > 3 || !is_tensor(arguments[0])) return false;
  has_indices_ = true;
  add(Word::kIndices);
  if (!read_one(arguments[0], 0)) return false;
  const std::vector<int64_t>& shape = reinterpret_cast<PyTensor*>(arguments[0])->value->type->shape;
  if (positional == 3) {
    PyObject* value = arguments[2];
    if (is_tensor(value)) {
      if (!read_one(value, 0)) return false;
    } else if (is_number(value)) {
      add(Word::kNumber);
      add(reinterpret_cast<uint64_t>(Py_TYPE(value)));
      if (!add_free(Py_NewRef(value))) return false;
    } else {
      return false;
    }
  }
  PyObject* const key = arguments[1];
  const bool several = PyTuple_CheckExact(key);
  PyObject* const* items = several ? &PyTuple_GET_ITEM(key, 0) : &key;
  const size_t count = several ? static_cast<size_t>(PyTuple_GET_SIZE(key)) : 1;
  const auto is_axis = [](PyObject* item) { return item != Py_None && item != Py_Ellipsis; };
  const auto used = static_cast<size_t>(std::count_if(items, items + count, is_axis));
  size_t axis = 0;
  bool has_dots = false;
  if (used > shape.size()) return false;
  for (size_t i = 0; i < count; ++i) {
    if (items[i] == Py_Ellipsis) {
      if (std::exchange(has_dots, true)) return false;
      add(Word::kEllipsis);
      axis += shape.size() - used;
    } else if (items[i] == Py_None) {
      add(Word::kNone);
    } else if (!read_index(items[i], shape[axis++])) {
      return false;
    }
    if (!has_room()) return false;
  }
  return true;
}

CallRecipe::~CallRecipe() {
  for (PyObject* object : numbers) Py_DECREF(object);
  for (PyObject* object : named) Py_DECREF(object);
}

size_t CallRecipe::memory() const {
  size_t bytes = sizeof *this + memory_of(calls) + memory_of(results) + memory_of(numbers) + memory_of(named);
  for (const Call& call : calls) bytes += memory_of(call.operands);
  return bytes;
}

PyObject* CallRecipe::repeat(const CallKey& key) const {
  PyObject *made[kMostCalls], *operands[kMostOperands];
  size_t made_count = 0;
  auto object_of = [&](Source source) {
    switch (source.kind) {
      case Source::kArgument: return key.tensors()[source.index];
      case Source::kCall: return made[source.index];
      case Source::kFree: return key.free()[source.index];
      default: return numbers[source.index];
    }
  };
  bool done = true;
  for (const Call& call : calls) {
    for (size_t k = 0; k < call.operands.size(); ++k) operands[k] = object_of(call.operands[k]);
    PyObject* result = call_operation(call.operation, call.attributes, operands, call.operands.size());
    if (!(done = result != nullptr)) break;
    made[made_count++] = result;
  }
  PyObject* found = nullptr;
  if (done && result == kSingle) {
    found = Py_NewRef(object_of(results[0]));
  } else if (done) {
    const auto count = static_cast<Py_ssize_t>(results.size());
    found = result == kTuple ? PyTuple_New(count) : PyList_New(count);
    for (Py_ssize_t i = 0; found && i < count; ++i) {
      PyObject* item = Py_NewRef(object_of(results[static_cast<size_t>(i)]));
      if (result == kTuple) PyTuple_SET_ITEM(found, i, item);
      else PyList_SET_ITEM(found, i, item);
    }
  }
  for (size_t k = 0; k < made_count; ++k) Py_DECREF(made[k]);
  return found;
}

thread_local CallWatch* CallWatch::innermost = nullptr;

CallWatch::CallWatch(const CallKey& key) : key_(key), recipe_(std::make_shared<CallRecipe>()), outer_(std::exchange(innermost, this)) {}

CallWatch::~CallWatch() {
  innermost = outer_;
  for (PyObject* object : results_) Py_DECREF(object);
}

void CallWatch::spoil() {
  for (CallWatch* watch = innermost; watch; watch = watch->outer_) watch->spoiled_ = true;
}

void CallWatch::note_all(Operation* operation, Attributes* attributes, PyObject* const* arguments, size_t count, PyObject* result) {
  for (CallWatch* watch = innermost; watch; watch = watch->outer_) {
    try {
      watch->add(operation, attributes, arguments, count, result);
    } catch (const std::bad_alloc&) {
      watch->spoiled_ = true;  // the call itself was recorded
    }
  }
}

bool CallWatch::find(PyObject* object, CallRecipe::Source* source) {
  // Results first: a function may return its argument from an identity.
  for (size_t i = results_.size(); i-- > 0;) {
    if (results_[i] == object) {
      *source = {CallRecipe::Source::kCall, static_cast<uint32_t>(i)};
      return true;
    }
  }
  for (size_t i = 0; i < key_.tensors().size(); ++i) {
    if (key_.tensors()[i] == object) {
      *source = {CallRecipe::Source::kArgument, static_cast<uint32_t>(i)};
      return true;
    }
  }
  return false;
}

void CallWatch::add(Operation* operation, Attributes* attributes, PyObject* const* arguments, size_t count, PyObject* result) {
  if (spoiled_) return;
  spoiled_ = !result || recipe_->calls.size() >= kMostCalls || count > kMostOperands;
  CallRecipe::Call call{operation, attributes, {}};
  for (size_t i = 0; i < count && !spoiled_; ++i) {
    CallRecipe::Source source{CallRecipe::Source::kNumber, static_cast<uint32_t>(recipe_->numbers.size())};
    if (is_number(arguments[i]) && key_.has_indices()) {
      source = {CallRecipe::Source::kFree, static_cast<uint32_t>(free_found_)};
      spoiled_ = free_found_ == key_.free().size() || !is_same_number(arguments[i], key_.free()[free_found_++]);
    } else if (is_number(arguments[i])) {
      recipe_->numbers.push_back(Py_NewRef(arguments[i]));
    } else {
      spoiled_ = !find(arguments[i], &source);
    }
    call.operands.push_back(source);
  }
  if (spoiled_) return;
  results_.push_back(Py_NewRef(result));
  recipe_->calls.push_back(std::move(call));
}

std::shared_ptr<CallRecipe> CallWatch::recipe(PyObject* result) {
  spoiled_ = spoiled_ || free_found_ != key_.free().size();
  const bool tuple = PyTuple_CheckExact(result), list = PyList_CheckExact(result);
  const Py_ssize_t count = tuple || list ? PySequence_Fast_GET_SIZE(result) : 1;
  recipe_->result = tuple ? CallRecipe::kTuple : list ? CallRecipe::kList : CallRecipe::kSingle;
  for (Py_ssize_t i = 0; i < count && !spoiled_; ++i) {
    CallRecipe::Source source{};
    spoiled_ = !find(tuple || list ? PySequence_Fast_GET_ITEM(result, i) : result, &source);
    recipe_->results.push_back(source);
  }
  if (spoiled_) return nullptr;
  for (PyObject* object : key_.named()) recipe_->named.push_back(Py_NewRef(object));
  return std::move(recipe_);
}

uint64_t CallMemo::generation = 0;

std::shared_ptr<CallRecipe> CallMemo::find(const CallKey& key) {
  const std::span<const uint64_t> words = key.words();
  for (Recent& recent : recent_) {
    if (!std::equal(words.begin(), words.end(), recent.key.begin(), recent.key.end())) continue;
    std::shared_ptr<CallRecipe> recipe = recent.recipe.lock();
    if (!recipe) break;  // evicted
    ++recipes().account.hits;
    recipe->used = next_use();
    return recipe;
  }
  std::shared_ptr<CallRecipe> recipe = recipes().find(bytes_of(key));
  if (recipe) {
    Recent& recent = recent_[oldest_++ % kRecent];
    recent.key.assign(words.begin(), words.end());
    recent.recipe = recipe;
  }
  return recipe;
}

void CallMemo::add(const CallKey& key, const std::shared_ptr<CallRecipe>& recipe) {
  failures_ = recipe ? 0 : failures_ + 1;
  if (!recipe) return;
  recipes().insert(bytes_of(key), recipe);
  recipes().bound();
}

}  // namespace twofold
