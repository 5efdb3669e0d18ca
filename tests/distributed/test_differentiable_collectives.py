"""torch.distributed.nn: what the only process gets, and that gradients pass."""

import pytest

import twofold as torch
import twofold.distributed as dist
from twofold.distributed import nn as dist_nn


@pytest.fixture(autouse=True)
def group():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


CALLS = {
    "all_reduce": lambda x: dist_nn.all_reduce(x),
    "all_reduce with op": lambda x: dist_nn.functional.all_reduce(x, op=dist.ReduceOp.MAX),
    "reduce": lambda x: dist_nn.reduce(x, 0),
    "broadcast": lambda x: dist_nn.broadcast(x, 0),
    "all_gather": lambda x: dist_nn.all_gather(x)[0],
    "gather": lambda x: dist_nn.gather(x)[0],
    "scatter": lambda x: dist_nn.scatter([x]),
    "reduce_scatter": lambda x: dist_nn.reduce_scatter(torch.empty(3), [x]),
    "all_to_all": lambda x: dist_nn.all_to_all([torch.empty(3)], [x])[0],
    "all_to_all_single": lambda x: dist_nn.all_to_all_single(torch.empty(3), x, [3], [3]),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_pass_through(name):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    result = CALLS[name](x)
    assert result is not x and result.tolist() == [1.0, 2.0, 3.0]
    (result * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 100.0]


def test_processes_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="no process 1"):
        dist_nn.broadcast(torch.ones(2), 1)
    with pytest.raises(ValueError, match="2 values for a group of 1"):
        dist_nn.scatter([torch.ones(2), torch.ones(2)])
    with pytest.raises(ValueError, match="first axis of 2"):
        dist_nn.all_to_all_single(torch.ones(2), torch.ones(2), [1])
