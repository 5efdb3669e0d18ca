// Cotangents that are products over the rows of calls, rows of tables, or sums of rows: kept as what they are made of until
// the sum is needed, which is one product, or one addition of rows.
#include <Python.h>

#include <algorithm>
#include <iterator>

#include "owned.h"
#include "tensor.h"
#include "backward_pass.h"

namespace twofold {

namespace {

constexpr size_t kJoined = 16;  // inputs of one concatenation, so that no number of calls makes a new op instance

}  // namespace

// Where contributions to the cotangent of a reference go; nowhere if no gradient flows there. False with a Python error set.
bool BackwardPass::find_destination(Scope& scope, Ref target, Destination* destination) {
  if (target >= 0) {
    *destination = Destination{&scope, target, nullptr};
    return true;
  }
  size_t number = static_cast<size_t>(~target);
  ValueRef leaf = scope.saved ? scope.saved->leaves[number].value : recorder_.leaves()[number].value;
  return find_leaf(leaf.get(), target, destination);
}

std::vector<Term>& BackwardPass::terms_of(const Destination& destination) {
  return destination.scope ? destination.scope->terms[destination.index] : sum_of(destination).terms;
}

// Keeps the gradient of an input as its factors.
bool BackwardPass::keep_factors(const Visit& visit, const Gradient& gradient, uint32_t k, const std::vector<Ref>& refs) {
  Term term;
  term.call = visit.entry.signature;
  term.input = k;
  term.gradient = &gradient;
  const SavedTrace* saved = visit.scope.saved.get();
  term.order = {saved ? saved->order : UINT64_MAX, static_cast<uint32_t>(visit.index)};
  term.origin = origin_of(visit.scope, static_cast<Ref>(visit.index));
  for (size_t i = 0; i < refs.size(); ++i) {
    if (gradient.used[i] == gradient.form.left && term.kind() != Form::kRows) term.left = refs[i];
    if (gradient.used[i] == gradient.form.right) term.right = refs[i];
  }
  if (term.kind() == Form::kRows) {
    term.inputs = refs;
    if (gradient.form.right == -1 && type_of(term.right) == gradient.signature->output) {  // one row, as it is
      if (!record_alone(term, &term.right)) return false;
      term.inputs.clear();
    }
  }
  Destination destination;
  if (!find_destination(visit.scope, visit.inputs[k], &destination)) return false;
  if (destination.reached()) terms_of(destination).push_back(std::move(term));
  return true;
}

// Whether somebody asks for the cotangent of an entry: hooks, or those who keep it.
bool BackwardPass::is_captured(const Scope& scope, size_t index) const {
  if (!scope.saved) {
    const Value* value = recorder_.live(static_cast<Ref>(index));
    return value && value->slot && !value->is_leaf;
  }
  return watched_at(scope.saved->watched, index) || is_target(scope, static_cast<Ref>(index));
}

// Gives products that the cotangent of a transposed matrix consists of to the matrix.
bool BackwardPass::pass_through_transpose(Scope& scope, size_t index, std::vector<Term>& terms) {
  const Entry& entry = scope.saved ? scope.saved->trace->trace.entries[index] : recorder_.entry(index);
  if (entry.count != 1 || !entry.flows_to(0) || is_captured(scope, index)) return true;
  const Ref input = (scope.saved ? scope.saved->trace->trace.inputs(entry) : recorder_.inputs(entry))[0];
  if (!scope.needed.empty() && !(scope.needed[index] && leads_to_target(scope, input))) return true;
  const GradientPlan* plan = gradient_plan_of(entry.signature, entry.gradient_mask);
  const Gradient* gradient = plan ? plan->at(0) : nullptr;
  if (!gradient) return false;
  if (gradient->form.kind != Form::kTranspose) return true;
  auto rest = std::stable_partition(terms.begin(), terms.end(), [](const Term& term) { return term.kind() != Form::kProduct; });
  std::vector<Term> passed(rest, terms.end());
  terms.erase(rest, terms.end());
  Destination destination;
  if (!find_destination(scope, input, &destination)) return false;
  if (!destination.reached() || passed.empty()) return true;
  std::vector<Term>& above = terms_of(destination);
  for (Term& term : passed) {
    std::swap(term.left, term.right);
    term.transposed = !term.transposed;
    above.push_back(std::move(term));
  }
  return true;
}

// What has arrived at an entry is its cotangent from here on.
bool BackwardPass::settle(Scope& scope, size_t index) {
  auto found = scope.terms.find(static_cast<Ref>(index));
  if (found == scope.terms.end()) return true;
  std::vector<Term> terms = std::move(found->second);
  scope.terms.erase(found);
  if (!pass_through_transpose(scope, index, terms)) return false;
  return add_terms(&scope.cotangents[index], std::move(terms));
}

bool BackwardPass::settle_slot(Sum& sum) { return add_terms(&sum.cotangent, std::exchange(sum.terms, {})); }

bool BackwardPass::settle_slots() {
  return std::all_of(sums_.begin(), sums_.end(), [&](Sum& sum) { return settle_slot(sum); });
}

// The slots of leaves with the first entry that reads each, in ascending order: once the pass has come there, nothing is
// added to a slot any more, and what its terms hold need not wait for the end. None where earlier traces may add to them.
std::vector<std::pair<size_t, GradientSlot*>> BackwardPass::first_readers(const Scope& scope) const {
  std::vector<std::pair<size_t, GradientSlot*>> found;
  if (scope.saved) return found;
  std::unordered_set<const GradientSlot*> seen;
  for (size_t i = 0; i < scope.cotangents.size(); ++i) {
    const Entry& entry = recorder_.entry(i);
    for (uint32_t k = 0; entry.requires_grad() && k < entry.count; ++k) {
      const Ref ref = recorder_.inputs(entry)[k];
      const Value* leaf = ref < 0 && entry.flows_to(k) ? recorder_.leaves()[static_cast<size_t>(~ref)].value.get() : nullptr;
      if (!leaf || !leaf->requires_grad) continue;
      if (!leaf->is_leaf) return {};
      if (leaf->slot && seen.insert(leaf->slot).second) found.emplace_back(i, leaf->slot);
    }
  }
  return found;
}

// Adds the sum of terms: that of products, then that of rows of tables, then that of rows.
bool BackwardPass::add_terms(Ref* sum, std::vector<Term> terms) {
  std::reverse(terms.begin(), terms.end());
  std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.order < b.order; });
  for (int32_t kind : {Form::kProduct, Form::kTable, Form::kRows}) {
    std::vector<Term> group;
    std::copy_if(terms.begin(), terms.end(), std::back_inserter(group), [&](const Term& term) { return term.kind() == kind; });
    if (!add_group(sum, group)) return false;
  }
  return true;
}

// Of several terms of one kind, one call with the rows of all in the order of the trace.
bool BackwardPass::add_group(Ref* sum, const std::vector<Term>& terms) {
  if (terms.empty()) return true;
  Ref made;
  const Origin origin = terms.back().origin;
  if (terms.size() == 1 && !terms[0].transposed) return record_alone(terms[0], &made) && add(sum, made, origin);
  static Operation* const product = operation_of(hooks.row_product);
  static Operation* const table = operation_of(hooks.row_table);
  static Operation* const rows_sum = operation_of(hooks.row_sum);
  const bool is_product = terms[0].kind() == Form::kProduct;
  const Type* whole = terms[0].call->inputs[terms[0].input];  // a transposed matrix has only products
  if (terms[0].kind() == Form::kRows) {
    Ref rows;
    return join_summed(terms, origin, &rows) && call(rows_sum, whole->shape, &rows, 1, origin, &made) && add(sum, made, origin);
  }
  std::vector<Ref> left, right;
  for (const Term& term : terms) {
    left.push_back(term.left);
    right.push_back(term.right);
  }
  Ref rows[2];
  if (!join_rows(left, is_product ? 1 : 0, origin, &rows[0])) return false;
  if (!join_rows(right, is_product ? 1 : static_cast<int64_t>(whole->shape.size()) - 1, origin, &rows[1])) return false;
  if (!(is_product ? call(product, {}, rows, 2, origin, &made) : call(table, whole->shape, rows, 2, origin, &made))) return false;
  return add(sum, made, origin);
}

bool BackwardPass::record_alone(const Term& term, Ref* out) {
  if (term.kind() == Form::kRows && term.inputs.empty()) {
    *out = term.right;
    return true;
  }
  const Gradient& gradient = *term.gradient;
  std::vector<Ref> refs;
  uint64_t mask = 0;
  for (size_t i = 0; i < gradient.used.size(); ++i) {
    const bool is_left = gradient.used[i] == gradient.form.left;
    refs.push_back(term.kind() == Form::kRows ? term.inputs[i] : is_left ? term.left : term.right);
    if (request_.create && requires_grad(refs[i])) mask |= Entry::mask_bit(i);
  }
  return record(gradient.signature, refs.data(), refs.size(), mask, term.origin, out);
}

// The rows of several sums as one matrix.
bool BackwardPass::join_summed(std::vector<Term> terms, const Origin& origin, Ref* out) {
  static Operation* compute = nullptr;
  if (!compute) {
    const Owned operation(PyObject_CallNoArgs(hooks.pullback_rows));
    compute = operation ? operation_of(operation.object) : nullptr;
    if (!compute) return false;
  }
  static Operation* const join = operation_of(hooks.join_rows);
  std::vector<Ref> rows;
  for (Term& term : terms) {
    const int64_t axes = term.gradient->form.left;
    const bool is_computed = term.gradient->form.right == Form::kComputed;
    Attributes* attributes = term.gradient->signature->attributes.get();
    if (is_computed && !call_with(compute, attributes, term.inputs.data(), term.inputs.size(), term.origin, &term.right)) return false;
    rows.push_back(term.right);
    if (axes != 1 && !call(join, {axes}, &term.right, 1, term.origin, &rows.back())) return false;
  }
  return join_rows(std::move(rows), 1, origin, out);
}

// The rows of all values as one matrix; the last `axes` axes are those of a row. The weights and the bias of a cell join the
// same cotangents.
bool BackwardPass::join_rows(std::vector<Ref> refs, int64_t axes, const Origin& origin, Ref* out) {
  static Operation* const join = operation_of(hooks.join_rows);
  auto [known, fresh] = joined_.try_emplace({axes, refs}, kNoRef);
  if (!fresh) {
    *out = known->second;
    return true;
  }
  while (refs.size() > 1) {
    std::vector<Ref> joined;
    for (size_t k = 0; k < refs.size(); k += kJoined) {
      const size_t count = std::min(kJoined, refs.size() - k);
      joined.push_back(refs[k]);
      if ((count > 1 || axes != 1) && !call(join, {axes}, &refs[k], count, origin, &joined.back())) return false;
    }
    refs = std::move(joined);
    axes = 1;
  }
  *out = known->second = refs[0];
  return true;
}

// Records a call of an operation whose attributes are numbers.
bool BackwardPass::call(Operation* operation, const std::vector<int64_t>& numbers, const Ref* inputs, size_t count, const Origin& origin,
                  Ref* out) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(numbers.size()));
  for (size_t i = 0; tuple && i < numbers.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(numbers[i]));
  }
  AttributesRef attributes = tuple ? attributes_of(tuple) : nullptr;
  Py_XDECREF(tuple);
  return attributes && call_with(operation, attributes.get(), inputs, count, origin, out);
}

bool BackwardPass::call_with(Operation* operation, Attributes* attributes, const Ref* inputs, size_t count, const Origin& origin, Ref* out) {
  std::vector<Type*> types;
  uint64_t mask = 0;
  for (size_t i = 0; i < count; ++i) {
    types.push_back(type_of(inputs[i]));
    if (request_.create && requires_grad(inputs[i])) mask |= Entry::mask_bit(i);
  }
  SignatureRef signature = signature_of(operation, attributes, types.data(), count, nullptr);
  return signature && record(signature, inputs, count, mask, origin, out);
}

}  // namespace twofold
