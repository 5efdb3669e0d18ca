// Memo of public Python functions whose calls of operations depend on the types of tensors and the other arguments only:
// the calls that it recorded are cached by these, and recorded again without Python.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache.h"
#include "guard.h"
#include "op_instance.h"

namespace twofold {

class CallMemo;

// The key of a call: the function, types of tensors and whether they are views, values of all other arguments.
class CallKey {
 public:
  explicit CallKey(const CallMemo& function);
  CallKey(const CallKey&) = delete;
  ~CallKey();
  // False if an argument has no key, or a tensor has an unknown type.
  bool read(PyObject* const* arguments, Py_ssize_t positional, PyObject* names);
  // Reads x and an index of it, perhaps also a value to write there, so that the positions in the index, and a number as the
  // value, are not part of the key but `free`. False for an index with anything but integers of its axes, slices of step 1,
  // ... and None.
  bool read_indices(PyObject* const* arguments, Py_ssize_t positional, PyObject* names);

  std::span<const uint64_t> words() const { return {words_, words_count_}; }
  // Objects that the key names by their addresses.
  std::span<PyObject* const> named() const { return {named_, named_count_}; }
  std::span<PyObject* const> tensors() const { return {tensors_, tensors_count_}; }
  // Numbers that are operands of the calls, each once and in this order.
  std::span<PyObject* const> free() const { return {free_, free_count_}; }
  bool has_indices() const { return has_indices_; }

 private:
  static constexpr size_t kMostWords = 256, kMostOfOne = 3, kMostFree = 16;

  bool read_one(PyObject* object, int depth);
  bool read_items(uint64_t kind, PyObject* const* items, Py_ssize_t count, int depth);
  bool name(uint64_t kind, PyObject* object);
  bool read_index(PyObject* item, int64_t size);
  bool add_free(PyObject* owned);
  // Whether the words of one more argument fit.
  bool has_room() const { return words_count_ + kMostOfOne <= kMostWords; }
  void add(uint64_t word) { words_[words_count_++] = word; }

  // Arrays, as a key is made for each call.
  size_t words_count_ = 0, named_count_ = 0, tensors_count_ = 0;
  uint64_t words_[kMostWords];
  PyObject* named_[kMostWords / 2];    // owned, as the tensors: a list that holds them may change while the call runs
  PyObject* tensors_[kMostWords / 3];
  PyObject* free_[kMostFree];
  size_t free_count_ = 0;
  bool has_indices_ = false;
};

// A recipe: the calls of operations that a Python function made, from its arguments to its result.
struct CallRecipe {
  // The source of an operand or result: a tensor argument, the result of an earlier call, a number, or a free one of the key.
  struct Source {
    enum Kind : uint8_t { kArgument, kCall, kNumber, kFree } kind;
    uint32_t index;
  };
  struct Call {
    Operation* operation;
    AttributesRef attributes;
    std::vector<Source> operands;
  };
  enum Result : uint8_t { kSingle, kTuple, kList };

  std::vector<Call> calls;
  std::vector<Source> results;
  Result result = kSingle;
  std::vector<PyObject*> numbers, named;  // owned
  uint64_t used = 0;

  CallRecipe() = default;
  CallRecipe(const CallRecipe&) = delete;
  ~CallRecipe();
  size_t memory() const;
  // Records the calls; a new reference, or null with an error set.
  PyObject* repeat(const CallKey& key) const;
};

// Watches all calls of operations while a Python function runs.
class CallWatch {
 public:
  explicit CallWatch(const CallKey& key);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;

  // The recipe of the function, if it can be repeated, from its result.
  std::shared_ptr<CallRecipe> recipe(PyObject* result);

  // Tells the watches of this thread of a call.
  static void note(Operation* operation, Attributes* attributes, PyObject* const* arguments, size_t count, PyObject* result) {
    if (innermost) note_all(operation, attributes, arguments, count, result);
  }
  // The functions that are watched cannot be repeated.
  static void spoil();

  // While it lives the core handles a call, and its callbacks are not watched.
  class Pause {
   public:
    Pause() : paused_(std::exchange(innermost, nullptr)) {}
    ~Pause() { innermost = paused_; }
    Pause(const Pause&) = delete;

   private:
    CallWatch* const paused_;
  };

 private:
  static void note_all(Operation* operation, Attributes* attributes, PyObject* const* arguments, size_t count, PyObject* result);
  bool find(PyObject* object, CallRecipe::Source* source);
  void add(Operation* operation, Attributes* attributes, PyObject* const* arguments, size_t count, PyObject* result);

  static thread_local CallWatch* innermost;
  const CallKey& key_;
  bool spoiled_ = false;
  size_t free_found_ = 0;
  std::vector<PyObject*> results_;  // owned, so that no address is reused
  std::shared_ptr<CallRecipe> recipe_;
  CallWatch* const outer_;  // last: nothing that is made after this watch is the innermost one may throw
};

// Marks the running function as impure: a recipe does not hold what it does.
template <auto function>
struct Spoiling;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Spoiling<function> {
  static Result call(Arguments... arguments) {
    CallWatch::spoil();
    return function(arguments...);
  }
};
template <auto function>
inline constexpr auto spoiling = guarded<Spoiling<function>::call>;

// The recipes of one function.
class CallMemo {
 public:
  // With `indices` the function takes a tensor and an index of it.
  explicit CallMemo(bool indices) : indices_(indices) {}
  bool indices() const { return indices_; }
  // Whether a call without a recipe is worth watching, as some functions can never be repeated.
  bool tries() {
    if (std::exchange(generation_, generation) != generation) failures_ = 0;
    return failures_ < kMostFailures || ++skipped_ % kSkipped == 0;
  }
  std::shared_ptr<CallRecipe> find(const CallKey& key);
  // Null if the call cannot be repeated.
  void add(const CallKey& key, const std::shared_ptr<CallRecipe>& recipe);
  // Clears the recipes of all functions.
  static void forget_all() { ++generation; }

 private:
  static constexpr uint32_t kMostFailures = 16, kSkipped = 64;
  static constexpr size_t kRecent = 4;

  // One of the last recipes, which is found without the cache: most functions are called on few types.
  struct Recent {
    std::vector<uint64_t> key;
    std::weak_ptr<CallRecipe> recipe;
  };
  static uint64_t generation;
  friend class CallKey;

  const bool indices_;
  const uint64_t number_ = next_use();       // a unique number
  uint64_t generation_ = generation;         // the generation in which the failures were counted
  Recent recent_[kRecent];
  size_t oldest_ = 0;                        // of these
  uint32_t failures_ = 0, skipped_ = 0;      // consecutive calls that could not be repeated, and calls not watched since
};

}  // namespace twofold
