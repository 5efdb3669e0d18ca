"""A group of one process: what programs for several do when they run alone."""

import pytest

import twofold as torch
import twofold.distributed as dist
from twofold.nn.parallel import DistributedDataParallel


@pytest.fixture
def group():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield dist.GroupMember.WORLD
    dist.destroy_process_group()


def test_numbers(group):
    assert dist.is_initialized() and dist.get_rank() == 0 and dist.get_world_size() == 1
    assert dist.get_backend() == "gloo" and group.size() == 1 and dist.group.WORLD is group
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    other = dist.new_group([0])
    assert dist.get_world_size(other) == 1
    with pytest.raises(ValueError, match="within the world_size"):
        dist.new_group([0, 1])
    outside = dist.new_group([])
    with pytest.raises(ValueError, match="does not hold"):
        dist.get_rank(outside)


def test_without_a_group():
    assert not dist.is_initialized()
    for call in (
        dist.get_rank,
        dist.barrier,
        lambda: dist.all_reduce(torch.ones(1)),
        dist.destroy_process_group,
    ):
        with pytest.raises(ValueError, match="has not been initialized"):
            call()
    with pytest.raises(ValueError, match="has not been initialized"):
        DistributedDataParallel(torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="has not been initialized"):
        torch.utils.data.DistributedSampler(range(4))


def test_groups_that_cannot_be_made(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(NotImplementedError, match="several processes"):
        dist.init_process_group("gloo", rank=0, world_size=2)
    with pytest.raises(ValueError, match="RANK expected"):
        dist.init_process_group("gloo")
    with pytest.raises(RuntimeError, match="nccl"):
        dist.init_process_group("nccl", rank=0, world_size=1)
    with pytest.raises(ValueError, match="Invalid backend"):
        dist.init_process_group("pigeons", rank=0, world_size=1)
    with pytest.raises(ValueError, match="rank and world_size"):
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1234")
    with pytest.raises(ValueError, match="rank 1 of 1"):
        dist.init_process_group("gloo", rank=1, world_size=1)
    assert not dist.is_initialized()


def test_numbers_of_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group()
    assert dist.get_world_size() == 1
    dist.destroy_process_group()


def test_operations(group):
    x = torch.tensor([1.0, 2.0])
    assert dist.all_reduce(x) is None and dist.all_reduce(x, dist.ReduceOp.AVG, async_op=True).wait()
    assert x.tolist() == [1, 2]
    for call in (
        lambda out: dist.all_gather([out], x),
        lambda out: dist.all_gather_into_tensor(out, x),
        lambda out: dist.reduce_scatter(out, [x]),
        lambda out: dist.reduce_scatter_tensor(out, x),
        lambda out: dist.gather(x, [out], dst=0),
        lambda out: dist.scatter(out, [x], src=0),
        lambda out: dist.all_to_all([out], [x]),
    ):
        found = torch.zeros(2)
        call(found)
        assert found.tolist() == [1, 2]
    stacked = torch.zeros(1, 2)
    dist.all_gather_into_tensor(stacked, x)
    assert stacked.tolist() == [[1, 2]]
    found = [None]
    dist.all_gather_object(found, "a")
    dist.broadcast_object_list(found, src=0)
    assert found == ["a"]
    with pytest.raises(ValueError, match="no process 1"):
        dist.broadcast(x, src=1)
    with pytest.raises(ValueError, match="2 values for a group of 1"):
        dist.all_gather([x, x], x)
    with pytest.raises(ValueError, match="no other process"):
        dist.send(x, 1)


def test_training(group):
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1), find_unused_parameters=True)
    x = torch.rand(4, 2)
    with model.no_sync():
        model(x).sum().backward()
    torch.testing.assert_close(model.module.weight.grad, x.sum(0, keepdim=True))
    sampler = torch.utils.data.DistributedSampler(range(4), shuffle=False)
    assert list(sampler) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="device_ids"):
        DistributedDataParallel(torch.nn.Linear(1, 1), device_ids=[0])
    with pytest.raises(RuntimeError, match="not needed"):
        DistributedDataParallel(torch.nn.ReLU())


def test_an_optimiser_of_which_each_process_would_have_a_part():
    from twofold.distributed.optim import ZeroRedundancyOptimizer

    def trained(make):
        w = torch.tensor([1.0, -2.0], requires_grad=True)
        optimizer = make([w])
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            scheduler.step()
        return optimizer, w

    with pytest.raises(RuntimeError, match="init_process_group"):
        ZeroRedundancyOptimizer([torch.ones(1)], torch.optim.Adam)
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        settings = {"lr": 0.1, "weight_decay": 0.01}
        optimizer, w = trained(lambda given: ZeroRedundancyOptimizer(given, torch.optim.Adam, **settings))
        plain, wanted = trained(lambda given: torch.optim.Adam(given, **settings))
        assert torch.equal(w, wanted) and optimizer.param_groups[0]["lr"] == plain.param_groups[0]["lr"]
        with pytest.raises(RuntimeError, match="consolidate_state_dict"):
            optimizer.state_dict()
        optimizer.consolidate_state_dict()
        assert optimizer.state_dict()["state"][0]["step"] == plain.state_dict()["state"][0]["step"] == 3
        optimizer.add_param_group({"params": [torch.ones(1, requires_grad=True)], "lr": 0.2})
        assert [group["lr"] for group in optimizer.param_groups] == [0.0125, 0.2]
        fresh = ZeroRedundancyOptimizer([w], torch.optim.Adam, lr=1.0)
        fresh.load_state_dict(plain.state_dict())
        assert fresh.param_groups[0]["lr"] == 0.0125 and fresh.state[w]["step"] == 3
    finally:
        torch.distributed.destroy_process_group()


def test_defaults_of_timeouts_are_those_of_torch():
    assert dist.constants.default_pg_timeout.total_seconds() == 1800
    assert dist.constants.default_pg_nccl_timeout is None
