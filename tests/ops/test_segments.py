"""Reductions of runs of neighbours, against loops over the runs."""

import numpy
import pytest

import twofold as torch

RUNS = {"sum": numpy.sum, "mean": numpy.mean, "prod": numpy.prod, "max": numpy.max, "min": numpy.min}


@pytest.mark.parametrize("reduce", RUNS)
@pytest.mark.parametrize("by", ["lengths", "offsets"])
def test_each_run_becomes_one_element(reduce, by):
    x = numpy.random.default_rng(0).standard_normal((6, 3)).astype(numpy.float32)
    runs = torch.tensor([2, 1, 3] if by == "lengths" else [0, 2, 3, 6])
    found = torch.segment_reduce(torch.tensor(x), reduce, **{by: runs})
    want = [RUNS[reduce](part, axis=0) for part in numpy.split(x, [2, 3])]
    numpy.testing.assert_allclose(found.numpy(), want, rtol=1e-6)


def test_runs_of_each_row_and_what_lies_behind_them():
    x = torch.arange(8.0).reshape(2, 4).requires_grad_()
    found = torch.segment_reduce(x, "sum", lengths=torch.tensor([[1, 2], [4, 0]]), axis=1, unsafe=True)
    assert found.tolist() == [[0.0, 3.0], [22.0, 0.0]]
    found.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]


def test_empty_runs_are_the_initial_value():
    x, runs = torch.tensor([1.0, 5.0]), torch.tensor([0, 2])
    assert torch.segment_reduce(x, "max", lengths=runs).tolist() == [-torch.inf, 5.0]
    assert torch.segment_reduce(x, "mean", lengths=runs, initial=2.0).tolist() == [2.0, 4.0]
    assert torch.isnan(torch.segment_reduce(x, "mean", lengths=runs)[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reduce": "median", "lengths": torch.tensor([2])}, "reduce 'median'"),
        ({"reduce": "sum"}, "not one of lengths and offsets"),
        ({"reduce": "sum", "lengths": torch.tensor([[2]])}, "runs of shape"),
    ],
)
def test_wrong_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        torch.segment_reduce(torch.ones(2), **options)


def test_the_hash_sees_every_bit():
    x = torch.randn(5, 7)
    assert torch.hash_tensor(x, 1, keepdim=True).shape == (5, 1)
    bits = numpy.bitwise_xor.reduce(x.numpy().astype(numpy.float64).view(numpy.uint64), axis=0)
    assert (torch.hash_tensor(x, 0).numpy() == bits).all()


@pytest.mark.parametrize("lengths", [[2, 2], [2, 4], [6, -1]])
def test_lengths_that_are_not_those_of_the_axis_are_errors(lengths):
    x = torch.ones(5)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"segment_reduce: lengths (add up to|contains negative)"):
            torch.segment_reduce(x, "sum", lengths=torch.tensor(lengths)).tolist()
    assert torch.segment_reduce(x, "sum", lengths=torch.tensor([2, 2]), unsafe=True).tolist() == [2.0, 2.0]
