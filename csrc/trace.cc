#include "trace.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "cache.h"
#include "pair_numbers.h"

namespace twofold {
namespace {

void append_bytes(std::string& out, const void* data, size_t size) { out.append(static_cast<const char*>(data), size); }

void append_number(std::string& out, int64_t number) { append_bytes(out, &number, sizeof number); }

std::vector<char> needed_entries(const Trace& trace, const std::vector<Ref>& outputs) {
  std::vector<char> needed(trace.entries.size(), 0);
  for (Ref ref : outputs) {
    if (ref >= 0) needed[static_cast<size_t>(ref)] = 1;
  }
  for (size_t i = trace.entries.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Entry& entry = trace.entries[i];
    for (uint32_t k = 0; k < entry.count; ++k) {
      Ref ref = trace.inputs(entry)[k];
      if (ref >= 0) needed[static_cast<size_t>(ref)] = 1;
    }
  }
  return needed;
}

}  // namespace

void Trace::append(const Entry& entry, const Ref* inputs) {
  // The entry last: if memory runs out the trace is unchanged but for unused references.
  const auto first_ref = static_cast<uint32_t>(refs.size());
  refs.insert(refs.end(), inputs, inputs + entry.count);
  entries.push_back(entry);
  entries.back().first_ref = first_ref;
}

void Trace::clear() {
  entries.clear();
  refs.clear();
  leaves.clear();
}

size_t Trace::memory() const { return memory_of(entries) + memory_of(refs) + memory_of(leaves); }

size_t Trace::entries_to_plan() const {
  constexpr size_t kAlike = 8;  // length of the n-grams by which a repetition is detected
  PairNumbers known(entries.size());
  std::vector<size_t> last;  // by number: the last end of these entries
  last.reserve(entries.size());
  size_t count = entries.size(), period = 0;
  for (size_t i = kAlike; i <= entries.size(); ++i) {
    uint32_t ids[kAlike];
    for (size_t k = 0; k < kAlike; ++k) ids[k] = entries[i - kAlike + k].instance->id;
    const uint32_t number = known.find(hash_bytes(ids, sizeof ids), 0, static_cast<uint32_t>(last.size()));
    if (number == last.size()) last.push_back(i);
    const size_t distance = i - std::exchange(last[number], i);
    count -= distance != 0 && distance == period;
    period = distance;
  }
  return count;
}

size_t CanonicalTrace::memory() const {
  return trace.memory() + memory_of(outputs) + memory_of(leaf_source) + memory_of(entry_source);
}

// What a canonical trace consists of.
struct CanonicalTrace::Parts {
  std::shared_ptr<const Trace> whole;
  std::vector<Ref> outputs;
  std::vector<int32_t> leaf_source, entry_source;

  // `own`: the trace, where it may be shared.
  Parts(const Trace& source, const std::vector<Ref>& wanted, const std::shared_ptr<const Trace>& own) {
    const std::vector<char> needed = needed_entries(source, wanted);
    if (own && is_canonical(source, needed)) {
      whole = own;
      outputs = wanted;
      leaf_source.resize(source.leaves.size());
      entry_source.resize(source.entries.size());
      std::iota(leaf_source.begin(), leaf_source.end(), 0);
      std::iota(entry_source.begin(), entry_source.end(), 0);
    } else {
      rewrite(source, wanted, needed);
    }
  }

 private:
  // Whether all entries are needed, and inputs numbered by first use.
  static bool is_canonical(const Trace& source, const std::vector<char>& needed) {
    if (std::find(needed.begin(), needed.end(), 0) != needed.end()) return false;
    size_t known = 0;
    for (Ref ref : source.refs) {
      if (ref >= 0 || static_cast<size_t>(~ref) < known) continue;
      if (static_cast<size_t>(~ref) != known++) return false;
    }
    return known == source.leaves.size();
  }

  void rewrite(const Trace& source, const std::vector<Ref>& wanted, const std::vector<char>& needed) {
    auto made = std::make_shared<Trace>();
    std::vector<Ref> entry_map(source.entries.size(), 0);
    std::vector<Ref> leaf_map(source.leaves.size(), 0);  // 0: not seen, else ~new
    auto translate = [&](Ref ref) {
      if (ref >= 0) return entry_map[static_cast<size_t>(ref)];
      size_t leaf = static_cast<size_t>(~ref);
      if (leaf_map[leaf] == 0) {
        leaf_map[leaf] = ~static_cast<Ref>(made->leaves.size());
        made->leaves.push_back(source.leaves[leaf]);
        leaf_source.push_back(static_cast<int32_t>(leaf));
      }
      return leaf_map[leaf];
    };
    size_t entries = 0, references = 0;
    for (size_t i = 0; i < source.entries.size(); ++i) {
      entries += needed[i] != 0;
      references += needed[i] ? source.entries[i].count : 0;
    }
    made->entries.reserve(entries);
    made->refs.reserve(references);
    entry_source.reserve(entries);
    for (size_t i = 0; i < source.entries.size(); ++i) {
      if (!needed[i]) continue;
      Entry entry = source.entries[i];
      const Ref* inputs = source.inputs(entry);
      entry.first_ref = static_cast<uint32_t>(made->refs.size());
      for (uint32_t k = 0; k < entry.count; ++k) made->refs.push_back(translate(inputs[k]));
      entry_map[i] = static_cast<Ref>(made->entries.size());
      made->entries.push_back(std::move(entry));
      entry_source.push_back(static_cast<int32_t>(i));
    }
    for (Ref ref : wanted) outputs.push_back(translate(ref));
    whole = std::move(made);
  }
};

CanonicalTrace::CanonicalTrace(Parts parts)
    : whole(std::move(parts.whole)),
      outputs(std::move(parts.outputs)),
      leaf_source(std::move(parts.leaf_source)),
      entry_source(std::move(parts.entry_source)) {}

CanonicalTrace::CanonicalTrace(const Trace& source, const std::vector<Ref>& wanted) : CanonicalTrace(Parts(source, wanted, nullptr)) {}

CanonicalTrace::CanonicalTrace(std::shared_ptr<const Trace> source, const std::vector<Ref>& wanted)
    : CanonicalTrace(Parts(*source, wanted, source)) {}

std::string CanonicalTrace::key() const {
  Digest digest;
  digest.add(trace.entries.size());
  for (const Entry& entry : trace.entries) digest.add(reinterpret_cast<uintptr_t>(entry.instance.get()));
  digest.add(trace.refs);
  digest.add(trace.leaves);
  digest.add(outputs);
  return digest.bytes();
}

std::string CanonicalTrace::portable_key() const {
  std::string out;
  append_number(out, static_cast<int64_t>(trace.leaves.size()));
  for (Type* type : trace.leaves) out += type->text() + ';';
  for (const Entry& entry : trace.entries) {
    out += entry.instance->operation->name + '(';
    append_bytes(out, trace.inputs(entry), entry.count * sizeof(Ref));
    out += ')' + entry.instance->attributes->bytes + entry.instance->output->text() + ';';
  }
  append_bytes(out, outputs.data(), outputs.size() * sizeof(Ref));
  return out;
}

uint64_t hash_bytes(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  uint64_t h = 0x243F6A8885A308D3ull ^ size;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    h = (h ^ word) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
  }
  uint64_t rest = 0;
  if (size > 0) std::memcpy(&rest, at, size);  // of an empty list `data` may be null
  h = (h ^ rest) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

void Digest::add_bytes(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  add(size);
  for (; size > 0; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    const size_t taken = std::min(size, sizeof word);
    std::memcpy(&word, at, taken);
    add(word);
    size -= taken;
  }
}

std::string Digest::bytes() const {
  const auto [low, high] = words();
  const uint64_t parts[] = {low, high};
  return {reinterpret_cast<const char*>(parts), sizeof parts};
}

}  // namespace twofold
