// Scratch memory of BatchPlanner, by entry.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "batch_plan.h"
#include "pair_numbers.h"

namespace twofold {

// By entry of a trace, while it is planned. Every flush needs them, so their memory is kept.
struct BatchScratch {
  // The class of an entry: a call, a concatenation, or the first of a body; then those that are no calls.
  enum Role : uint8_t { kCall, kJoin, kBody, kInside, kSame, kPart, kMerged };

  std::vector<Role> role;
  std::vector<uint32_t> count;              // of operands
  std::vector<const Body*> body;            // the body of which it is the first entry
  std::vector<Ref> same, base;              // the entry with which it is merged; the base of which it is a slice, or itself
  std::vector<uint32_t> key, depth, uses;
  std::vector<uint32_t> height;             // the longest chain of calls that depends on it
  std::vector<uint32_t> last;               // the last entry of its chain, or itself
  std::vector<int32_t> carried;
  std::vector<uint8_t> alone;               // whether it is the first entry of a body whose call runs by itself
  std::vector<uint8_t> stays, moves;        // it, or a slice of it, is an output; its offset depends on an integer
  std::vector<uint32_t> heads;              // the entries that are not inside a body
  std::vector<uint32_t> pending, first_user, next_user, users, before, leaf_uses;

  void resize(size_t n) {
    role.assign(n, kCall);
    for (auto* list : {&count, &key, &depth, &last, &before}) list->resize(n);
    for (auto* list : {&uses, &pending, &height}) list->assign(n, 0);
    body.resize(n);
    same.resize(n);
    base.resize(n);
    carried.assign(n, -1);
    alone.resize(n);
    stays.assign(n, 0);
    moves.assign(n, 0);
    heads.clear();
    first_user.assign(n + 1, 0);
  }
};

// Why a call is never batched.
enum class Apart : uint8_t { kNo, kLarge, kHost };
// Calls that may be batched.
struct Key {
  int64_t depths = 0;        // sum over its entries, less how many calls in a row wait for each
  uint32_t count = 0, first = 0;  // first: its first call
  uint32_t launched = 0;
  bool is_queued = false;
  std::vector<uint32_t> ready;
  Apart apart = Apart::kNo;

  // Whether no other call will be ready with those that are.
  bool is_complete() const { return launched + ready.size() == count; }
  bool comes_before(const Key& other) const {
    const int64_t left = depths * other.count, right = other.depths * count;
    return left != right ? left < right : first < other.first;
  }

  // Counts one of its calls, which is not batched, by the reason.
  void count_alone(CallsAlone& alone) const {
    if (apart == Apart::kLarge) ++alone.large;
    else if (apart == Apart::kHost) ++alone.host;
    else if (count == 1) ++alone.only;
    else ++alone.waiting;
  }
};

// A call, and one whose result, or a slice of it, it reads.
struct Edge {
  uint32_t user, from;
};

// What is known of the calls of a body: how many there are and read one another, their keys, and these with their depths.
struct BodyCalls {
  size_t calls = 0, chained = 0, keys = 0, depths = 0;
  bool alone = false;  // whether each call runs by itself

  bool is_chained() const { return 2 * chained > calls; }
  bool is_lone() const { return 2 * calls < 3 * (is_chained() ? depths : keys); }
};

// The key of a call: a number for its op instance, then one for that and each shared operand in turn.
struct Shares {
  explicit Shares(size_t expected) : numbers(expected) {}

  uint32_t find(uint64_t a, uint64_t b) {
    const uint32_t found = numbers.find(a, b, static_cast<uint32_t>(key.size()));
    if (found == key.size()) {
      key.push_back(UINT32_MAX);
      call.push_back(UINT32_MAX);
    }
    return found;
  }

  PairNumbers numbers;
  std::vector<uint32_t> key, call;  // by number: the key of such calls, and the first that shares all of its operands
};

// Acquired while a trace is planned, which may call Python and so plan another one.
class ScratchLoan {
 public:
  ScratchLoan() : scratch_(spare() ? std::move(spare()) : std::make_unique<BatchScratch>()) {}
  ~ScratchLoan() { spare() = std::move(scratch_); }
  ScratchLoan(const ScratchLoan&) = delete;
  BatchScratch* operator->() const { return scratch_.get(); }

 private:
  static std::unique_ptr<BatchScratch>& spare() {
    static auto& kept = *new std::unique_ptr<BatchScratch>();
    return kept;
  }
  std::unique_ptr<BatchScratch> scratch_;
};

}  // namespace twofold
