"""Sparse tensors against SciPy's sparse matrices and against dense tensors of the same elements."""

from __future__ import annotations

import copy
from typing import Any

import numpy
import pytest
import scipy.sparse

import twofold as torch
from twofold.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError


def drawn(rows: int, columns: int, count: int, seed: int = 0, dtype: Any = numpy.float64) -> tuple[Any, Any]:
    """A sparse tensor and SciPy's of the same coordinates, some of which come twice."""
    random = numpy.random.default_rng(seed)
    where = numpy.stack([random.integers(0, rows, count), random.integers(0, columns, count)])
    values = random.standard_normal(count).astype(dtype)
    ours = torch.sparse_coo_tensor(where, torch.from_numpy(values), (rows, columns))
    return ours, scipy.sparse.coo_matrix((values, where), (rows, columns))


def close(ours: Any, theirs: Any) -> bool:
    dense = ours.to_dense().detach().numpy()
    return dense.shape == theirs.shape and numpy.allclose(dense, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_forms_hold_the_same_elements(count):
    ours, theirs = drawn(5, 4, count)
    dense = theirs.toarray()
    assert close(ours, dense)
    together = ours.coalesce()
    flat = together.indices().numpy()[0] * 4 + together.indices().numpy()[1]
    assert together.is_coalesced() and (numpy.diff(flat) > 0).all()
    assert close(together, dense)
    assert close(ours.to_dense().to_sparse(), dense)
    assert close(ours.t(), dense.T)
    assert close(
        together.transpose(0, 1).to(torch.float32).double(), together.to_dense().numpy().T.astype("f")
    )
    assert all(close(ours[row], dense[row]) for row in range(-5, 5))


@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_products_are_those_of_scipy(count):
    ours, theirs = drawn(5, 4, count)
    other, their_other = drawn(4, 6, count, seed=1)
    dense = torch.from_numpy(numpy.random.default_rng(2).standard_normal((4, 3)))
    left = torch.from_numpy(numpy.random.default_rng(3).standard_normal((2, 5)))
    product = theirs @ dense.numpy()
    for made in (
        ours @ dense, ours.mm(dense), torch.mm(ours, dense), torch.matmul(ours, dense), torch.spmm(ours, dense),
        torch.sparse.mm(ours, dense), torch.nn.functional.linear(ours, dense.t()),
    ):  # fmt: skip
        assert close(made, product)
    for made in (left @ ours, torch.mm(left, ours), left.mm(ours), torch.matmul(input=left, other=ours)):
        assert close(made, left.numpy() @ theirs.toarray())
    assert close(ours @ dense[:, 0], theirs @ dense[:, 0].numpy())
    assert close(ours @ other, (theirs @ their_other).toarray())
    assert (ours @ other).is_sparse and not (ours @ dense).is_sparse
    square = torch.sparse.addmm(torch.ones(4, 4, dtype=torch.float64), other, other.t().to_dense(), alpha=2)
    assert close(square, 1 + 2 * (their_other @ their_other.T).toarray())


def test_arithmetic_is_that_of_dense_tensors():
    ours, theirs = drawn(5, 4, 12)
    other, their_other = drawn(5, 4, 9, seed=1)
    dense = torch.from_numpy(numpy.random.default_rng(2).standard_normal((5, 4)))
    one, two, full = theirs.toarray(), their_other.toarray(), dense.numpy()
    assert close(ours + other, one + two) and close(ours - other, one - two) and close(-ours, -one)
    assert close(torch.add(ours, other, alpha=3), one + 3 * two)
    assert close(dense + ours, full + one) and close(dense - ours, full - one)
    assert close(torch.add(dense, ours), full + one) and close(torch.sub(dense, ours), full - one)
    assert close(ours * 3, one * 3) and close(2 * ours, one * 2) and close(ours / 4, one / 4)
    assert (
        close(ours * dense, one * full) and close(dense * ours, one * full) and close(ours * other, one * two)
    )
    assert close(ours * dense[0], one * full[0])
    assert close(torch.sqrt(ours.square()), abs(one)) and close(torch.abs(input=ours), abs(one))


def test_sums_are_those_of_dense_tensors():
    ours, theirs = drawn(5, 4, 12)
    dense = theirs.toarray()
    assert numpy.isclose(torch.sum(ours).item(), dense.sum())
    assert close(torch.sparse.sum(ours, 0), dense.sum(0)) and close(ours.sum(dim=-1), dense.sum(1))
    assert numpy.isclose(torch.sparse.sum(ours, (0, 1)).item(), dense.sum())
    values = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    deep = torch.sparse_coo_tensor([[0, 2, 2], [1, 0, 0]], values, (3, 2, 4))
    whole = deep.to_dense().numpy()
    assert deep.dense_dim() == 1 and whole[2, 0].tolist() == [12, 14, 16, 18]
    assert close(torch.sparse.sum(deep, 2), whole.sum(2)) and close(
        torch.sparse.sum(deep, (0, 2)), whole.sum((0, 2))
    )
    assert close(torch.sparse.sum(deep, (0, 1)), whole.sum((0, 1)))
    assert close(deep.to_dense().to_sparse(2), whole) and deep.to_dense().to_sparse(2)._nnz() == 2


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_is_over_the_elements_that_are_there(dim):
    ours, theirs = drawn(5, 4, 9)
    there = numpy.zeros((5, 4), bool)
    there[tuple(ours._indices().numpy())] = True
    masked = numpy.where(there, theirs.toarray(), -numpy.inf)
    powers = numpy.exp(masked)
    wanted = powers / numpy.maximum(powers.sum(dim, keepdims=True), 1e-300)
    assert close(torch.sparse.softmax(ours, dim), wanted)
    logs = torch.sparse.log_softmax(ours, dim)
    assert numpy.allclose(torch.exp(logs.values()).numpy(), torch.sparse.softmax(ours, dim).values().numpy())


def test_gradients_are_those_of_the_dense_product():
    ours, theirs = drawn(5, 4, 12)
    values = ours._values().clone().requires_grad_()
    dense = torch.from_numpy(numpy.random.default_rng(2).standard_normal((4, 3))).requires_grad_()
    weights = torch.from_numpy(numpy.random.default_rng(3).standard_normal((5, 3)))
    made = torch.sparse_coo_tensor(ours._indices(), values, (5, 4))
    (torch.sparse.mm(made, dense) * weights).sum().backward()
    rows, columns = ours._indices().numpy()
    assert numpy.allclose(dense.grad.numpy(), theirs.toarray().T @ weights.numpy())
    assert numpy.allclose(values.grad.numpy(), (weights.numpy() @ dense.detach().numpy().T)[rows, columns])
    leaf = torch.sparse_coo_tensor(ours._indices(), ours._values(), (5, 4), requires_grad=True)
    (leaf @ dense.detach() * weights).sum().backward()
    assert leaf.requires_grad and torch.equal(leaf.grad._values(), values.grad)


class EdgeProduct(torch.autograd.Function):
    """The product with a sparse matrix and its gradients, as graph attention networks write them."""

    @staticmethod
    def forward(ctx, indices, values, shape, dense):
        made = torch.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(made, dense)
        return torch.matmul(made, dense)

    @staticmethod
    def backward(ctx, grad_output):
        made, dense = ctx.saved_tensors
        rows, columns = made._indices()
        whole = grad_output.matmul(dense.t())
        return None, whole.view(-1)[rows * made.size()[1] + columns], None, made.t().matmul(grad_output)


def test_functions_of_the_user_keep_sparse_tensors():
    ours, theirs = drawn(5, 4, 12)
    values = ours._values().clone().requires_grad_()
    dense = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)
    EdgeProduct.apply(ours._indices(), values, (5, 4), dense).sum().backward()
    assert numpy.allclose(dense.grad.numpy(), theirs.toarray().T @ numpy.ones((5, 3)))
    assert values.grad.tolist() == [3.0] * 12


def test_older_constructors_and_sizes():
    ours = torch.sparse.FloatTensor(
        torch.LongTensor([[0, 1], [2, 0]]), torch.FloatTensor([3, 4]), torch.Size([2, 3])
    )
    assert isinstance(ours, torch.sparse.FloatTensor) and not isinstance(ours, torch.sparse.LongTensor)
    assert ours.to_dense().tolist() == [[0, 0, 3], [4, 0, 0]]
    assert torch.sparse_coo_tensor([[0, 1], [2, 0]], [3, 4]).shape == (2, 3)
    assert (
        torch.sparse_coo_tensor([[0, 1], [2, 0]], torch.ones(2), (2, 3), dtype=torch.int64).dtype
        is torch.int64
    )
    assert ours.layout is torch.sparse_coo and ours.is_sparse and not ours.to_dense().is_sparse
    assert (ours._nnz(), ours.dim(), ours.sparse_dim(), ours.size(1), len(ours), ours.numel()) == (
        2,
        2,
        2,
        3,
        2,
        6,
    )


def test_what_has_no_sparse_form_raises():
    ours, _ = drawn(5, 4, 12)
    with pytest.raises(TypeError, match="cos: operand 1 is of type SparseTensor"):
        torch.cos(ours)
    with pytest.raises(TypeError, match="Use dense \\+ sparse"):
        ours + torch.ones(5, 4)
    with pytest.raises(TypeError, match="zeros cannot divide"):
        ours / torch.ones(5, 4)
    with pytest.raises(TypeError, match="to_dense"):
        ours.numpy()
    with pytest.raises(RuntimeError, match="coalesce"):
        ours.indices()
    with pytest.raises(RuntimeError, match="not available"):
        ours.cuda()
    with pytest.raises(ShapeError, match=r"mm: shapes \(5, 4\) and \(5, 4\)"):
        ours @ ours
    with pytest.raises(DTypeError, match="float64 and float32"):
        torch.mm(ours, torch.ones(4, 2))
    with pytest.raises(ShapeError, match=r"\[sparse axes, count\]"):
        torch.sparse_coo_tensor([0, 1], [1.0, 2.0], (2,))
    with pytest.raises(ShapeError, match="for 1 sparse axes"):
        torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 2))
    with pytest.raises(IndexRangeError, match="outside an axis of size 2"):
        torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (2,), check_invariants=True)
    with pytest.raises(ArgumentError, match="sparse_dim 3 of 2 axes"):
        torch.ones(2, 2).to_sparse(3)


class Doubling:
    """A class of the user that handles functions by PyTorch's protocol, and declines products."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        assert types == (cls,)
        if func is torch.mm:
            return NotImplemented
        plain = [2 * one.value if isinstance(one, cls) else one for one in args]
        return cls(func(*plain, **(kwargs or {})))


def test_classes_see_to_calls_by_the_protocol():
    assert torch.add(torch.ones(2), Doubling(torch.ones(2))).value.tolist() == [3, 3]
    assert torch.sum(Doubling(torch.ones(2, 2)), dim=0).value.tolist() == [4, 4]
    with pytest.raises(TypeError, match="mm: "):
        torch.mm(Doubling(torch.ones(2, 2)), torch.ones(2, 2))


class Naming:
    """Answers with the name of the class whose turn it is, and with those of all classes of the call."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.__name__, [one.__name__ for one in types]


class Derived(Naming):
    pass


class Other(Naming):
    pass


def test_classes_see_to_calls_before_those_they_derive_from():
    assert torch.add(Naming(), Derived()) == ("Derived", ["Derived", "Naming"])
    assert torch.add(Other(), Derived()) == ("Other", ["Other", "Derived"])
    assert torch.where(Other(), Naming(), Derived()) == ("Other", ["Other", "Derived", "Naming"])


def test_classes_see_to_calls_with_lists_of_them():
    assert torch.stack([torch.ones(1), Naming(), Derived()]) == ("Derived", ["Derived", "Naming"])
    assert torch.cat((torch.ones(1), Other()), dim=0) == ("Other", ["Other"])


class Evasive(Naming):
    """Has whatever a function may ask of a tensor."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.sum(x, dim=0),
        lambda x: torch.nn.functional.cross_entropy(x, x),
        lambda x: torch.nn.functional.embedding(x, torch.ones(2, 2)),
        lambda x: torch.cat([torch.ones(1), x]),
        lambda x: torch.reshape(input=x, shape=(2,)),
        lambda x: torch.add(x, 1, out=torch.ones(1)),
        lambda x: torch.add(torch.ones(1), x),
    ],
)
def test_classes_see_to_calls_before_functions_work_with_them(call):
    assert call(Evasive()) == ("Evasive", ["Evasive"])


def test_methods_are_found_while_a_function_is_declared():
    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))

    def declared(values):
        sparse = type(x)(torch.tensor([[0, 1], [2, 0]]), values, (2, 3), True)
        assert [hasattr(sparse, name) for name in ("erfinv", "cosh", "asinh", "log2")] == [
            True,
            False,
            True,
            False,
        ]
        return sparse.asinh()._values()

    made = torch.cond(torch.tensor(True), declared, lambda values: values, (x._values(),))
    assert made.tolist() == torch.asinh(x._values()).tolist()


def test_a_product_takes_either_kind_of_matrix_on_either_side():
    x, dense = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)), torch.ones(3, 2)
    assert torch.spmm(dense, x).tolist() == [[4.0, 0.0, 3.0]] * 3
    assert torch.spmm(dense, dense.t()).tolist() == [[2.0] * 3] * 3
    for pair in ((x, 1), (1, x), (x, None), (dense, 3)):
        with pytest.raises((ArgumentError, DTypeError)):
            torch.spmm(*pair)


def test_buffers_of_modules():
    class Propagation(torch.nn.Module):
        def __init__(self, matrix):
            super().__init__()
            self.register_buffer("matrix", matrix)
            self.weight = torch.nn.Parameter(torch.ones(3, 1))

        def forward(self, x):
            return torch.sparse.mm(self.matrix, x) @ self.weight

    dense = numpy.array([[0.0, 2, 0], [1, 0, 3]], numpy.float32)
    module = Propagation(torch.tensor(dense).to_sparse())
    x = numpy.arange(9, dtype=numpy.float32).reshape(3, 3)
    numpy.testing.assert_allclose(module(torch.tensor(x)).detach().numpy(), dense @ x @ numpy.ones((3, 1)))
    assert module.double().matrix.dtype is torch.float64 and module.float().matrix.dtype is torch.float32
    other = Propagation(torch.zeros(2, 3).to_sparse())
    other.load_state_dict(copy.deepcopy(module).state_dict())
    numpy.testing.assert_array_equal(other.matrix.to_dense().numpy(), dense)
    module.matrix = torch.zeros(2, 3).to_sparse()
    assert not module.matrix.to_dense().any() and other.matrix.to_dense().any()
    with pytest.raises(RuntimeError, match="size mismatch"):
        Propagation(torch.zeros(3, 3).to_sparse()).load_state_dict(module.state_dict())
    with pytest.raises(TypeError, match="dense"):
        module.matrix.copy_(torch.zeros(2, 3))


def test_sparse_tensors_are_leaves() -> None:
    dense = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    x.requires_grad = True
    loss = (torch.sparse.mm(x, dense) ** 2).sum()
    (found,) = torch.autograd.grad(loss, x, retain_graph=True)
    # of the dense product: 2 (x @ dense) @ dense.T, at the coordinates
    expected = 2 * (x.detach().to_dense() @ dense) @ dense.T
    assert found.is_sparse and found.shape == (2, 3)
    assert found._values().tolist() == [expected[0, 2].item(), expected[1, 0].item()]
    loss.backward()
    assert x.grad.is_sparse and x.grad._values().tolist() == found._values().tolist()
    y = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), requires_grad=True)
    assert y.requires_grad and y.ndimension() == 2 and y.mT.shape == (3, 2)


def test_norms_masks_and_empty_ones() -> None:
    x = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2))
    assert x.norm().item() == 3 and x.norm(1).item() == 3 and x.norm(p="fro").item() == 3
    with pytest.raises(ArgumentError, match="only that of all elements"):
        x.norm(dim=0)
    empty = torch.zeros_like(x)
    assert empty.is_sparse and empty._nnz() == 0 and empty.shape == (2, 2)
    found = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(x.coalesce())
    assert found.to_dense().tolist() == [[0, 2], [0, 0]]
    with pytest.raises(ShapeError, match="sparse_mask"):
        torch.ones(3, 2).sparse_mask(x)


def test_index_select_takes_slices_in_the_order_of_the_index():
    indices = torch.tensor([[0, 2, 2, 0, 3], [1, 0, 2, 1, 1]])
    values = torch.tensor([3.0, 4.0, 5.0, 6.0, 7.0], requires_grad=True)
    x = torch.sparse_coo_tensor(indices, values, (4, 3))
    dense = x.to_dense().detach()
    for dim, index in ((0, [2, 0, 2]), (0, [1]), (1, [2, 1, 0, 1]), (-1, [0]), (0, []), (0, [3, 3, 1, 0, 2])):
        chosen = torch.tensor(index, dtype=torch.int64)
        found = x.index_select(dim, chosen)
        assert found.is_sparse and found.to_dense().tolist() == dense.index_select(dim, chosen).tolist()
    x.index_select(0, torch.tensor([2, 0, 2])).to_dense().sum().backward()
    assert values.grad.tolist() == [1.0, 2.0, 2.0, 1.0, 0.0]
    rows = torch.sparse_coo_tensor([[2, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    assert rows.index_select(1, torch.tensor([1, 1])).to_dense().tolist() == [
        [4.0, 4.0],
        [0.0, 0.0],
        [2.0, 2.0],
    ]
    assert rows.index_select(0, torch.tensor([0])).to_dense().tolist() == [[3.0, 4.0]]
    with pytest.raises(IndexError):
        x.index_select(0, torch.tensor([4]))


def test_leaves_and_gradients_that_are_written() -> None:
    """As PyTorch 2.13 has them, but for a gradient of other coordinates, which raises."""
    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), requires_grad=True)
    y = x * 2
    assert (x.is_leaf, x.grad_fn, y.is_leaf) == (True, None, False) and y.grad_fn is not None
    y.retain_grad()
    torch.sparse.sum(y * y).backward()
    assert y.grad.to_dense().tolist() == [[0, 0, 12], [16, 0, 0]]
    gradient = x.grad
    x.grad = None
    assert x.grad is None
    x.grad = gradient
    assert x.grad.to_dense().tolist() == [[0, 0, 24], [32, 0, 0]]
    for wrong in (torch.ones(2, 3), torch.eye(2, 3).to_sparse()):
        with pytest.raises(RuntimeError, match="grad of a sparse tensor"):
            x.grad = wrong
    del x.grad
    assert x.grad is None
