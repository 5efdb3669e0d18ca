// A trace: a list of instructions (calls of op instances) over numbered inputs (leaves). Both faces record into one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "op_instance.h"

namespace twofold {

// A reference to a value of a trace: the number of an entry, or ~k for input k.
using Ref = int32_t;

// Reserves one more element, so that adding it cannot fail.
template <class T>
void make_room(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(list.size() < 16 ? 32 : 2 * list.size());
}

struct Entry {
  OpInstanceRef instance;
  uint32_t first_ref;
  uint32_t count;
  uint64_t gradient_mask;  // bit i: the gradient flows to input i; the last bit stands for all inputs from there on

  static uint64_t mask_bit(size_t input) { return uint64_t{1} << (input < 63 ? input : 63); }
  bool flows_to(size_t input) const { return (gradient_mask & mask_bit(input)) != 0; }
  bool requires_grad() const { return gradient_mask != 0 && instance->differentiable; }
};

struct Trace {
  std::vector<Entry> entries;
  std::vector<Ref> refs;
  std::vector<Type*> leaves;

  const Ref* inputs(const Entry& entry) const { return refs.data() + entry.first_ref; }
  Type* type_of_ref(Ref ref) const {
    return ref >= 0 ? entries[static_cast<size_t>(ref)].instance->output : leaves[static_cast<size_t>(~ref)];
  }
  void append(const Entry& entry, const Ref* inputs);
  void clear();
  size_t memory() const;
  // The approximate number of entries, repetitions such as equal layers counted once.
  size_t entries_to_plan() const;
};

// A canonical trace: without dead code, and with inputs numbered by first use; equal computations have equal traces.
struct CanonicalTrace {
  const std::shared_ptr<const Trace> whole;
  const Trace& trace = *whole;
  std::vector<Ref> outputs;
  std::vector<int32_t> leaf_source;   // canonical leaf -> leaf of the trace it came from
  std::vector<int32_t> entry_source;  // canonical entry -> entry of the trace it came from

  CanonicalTrace(const Trace& trace, const std::vector<Ref>& outputs);
  // Shares the trace if it is canonical.
  CanonicalTrace(std::shared_ptr<const Trace> trace, const std::vector<Ref>& outputs);
  // In-process key: a digest, with op instances by identity.
  std::string key() const;
  // Key that means the same in every process: names, attributes and types by value.
  std::string portable_key() const;
  size_t memory() const;

 private:
  struct Parts;
  explicit CanonicalTrace(Parts parts);
};

uint64_t hash_bytes(const void* data, size_t size);

// A 128-bit hash of all bytes that were added.
class Digest {
 public:
  template <class T>
  void add(const T* items, size_t count) {
    static_assert(std::has_unique_object_representations_v<T>);  // no padding, whose bytes are anything
    add_bytes(items, count * sizeof(T));
  }
  template <class T>
  void add(const std::vector<T>& items) { add(items.data(), items.size()); }
  void add(uint64_t word) {
    low_ = mixed((low_ ^ word) * 0x9E3779B97F4A7C15ull);
    high_ = mixed((high_ + word) * 0xD6E8FEB86659FD93ull);
  }
  std::pair<uint64_t, uint64_t> words() const { return {mixed(low_ * 0xD6E8FEB86659FD93ull), mixed(high_ * 0x9E3779B97F4A7C15ull)}; }
  std::string bytes() const;

 private:
  void add_bytes(const void* data, size_t size);
  static uint64_t mixed(uint64_t x) { return x ^ (x >> 32); }

  uint64_t low_ = 0x243F6A8885A308D3ull, high_ = 0x13198A2E03707344ull;
};

}  // namespace twofold
