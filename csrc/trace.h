// A trace: operation calls in order, over numbered leaves. Both ways of declaring make one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "signature.h"

namespace twofold {

// A reference to a value of a trace: entry number, or ~leaf number.
using Ref = int32_t;

// Room for one more element, so that adding it cannot fail.
template <class T>
void make_room(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(list.size() < 16 ? 32 : 2 * list.size());
}

struct Entry {
  SignatureRef signature;
  uint32_t first_ref;
  uint32_t count;
  uint64_t gradient_mask;  // bit i: the gradient flows to input i; the last bit stands for all inputs from there on

  static uint64_t mask_bit(size_t input) { return uint64_t{1} << (input < 63 ? input : 63); }
  bool flows_to(size_t input) const { return (gradient_mask & mask_bit(input)) != 0; }
  bool requires_grad() const { return gradient_mask != 0 && signature->differentiable; }
};

struct Trace {
  std::vector<Entry> entries;
  std::vector<Ref> refs;
  std::vector<Type*> leaves;

  const Ref* inputs(const Entry& entry) const { return refs.data() + entry.first_ref; }
  Type* type_of_ref(Ref ref) const {
    return ref >= 0 ? entries[static_cast<size_t>(ref)].signature->output : leaves[static_cast<size_t>(~ref)];
  }
  void append(const Entry& entry, const Ref* inputs);
  void clear();
  size_t memory() const;
};

// Entries that outputs need, in order, with leaves numbered by first use; equal programs become equal.
struct CanonicalTrace {
  Trace trace;
  std::vector<Ref> outputs;
  std::vector<int32_t> leaf_source;   // canonical leaf -> leaf of the trace it came from
  std::vector<int32_t> entry_source;  // canonical entry -> entry of the trace it came from

  CanonicalTrace(const Trace& trace, const std::vector<Ref>& outputs);
  // In-process key: signatures by identity.
  std::string key() const;
  // Key that means the same in every process: names, attributes and types by value.
  std::string portable_key() const;
  size_t memory() const;
};

uint64_t hash_bytes(const void* data, size_t size);

}  // namespace twofold
