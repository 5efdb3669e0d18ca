"""Programs that would use a graphics card find none, and go on."""

import pytest

import twofold as torch


def test_questions_about_devices_are_answered():
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None
    assert not torch.backends.mps.is_available() and not torch.backends.cudnn.is_available()
    torch.cuda.manual_seed_all(1)
    torch.backends.cudnn.benchmark = torch.backends.cuda.matmul.allow_tf32 = True


@pytest.mark.parametrize("name", ["set_device", "get_device_name", "FloatTensor"])
def test_using_a_device_is_an_error(name):
    with pytest.raises(RuntimeError, match="device 'cuda' is not available"):
        getattr(torch.cuda, name)(0)


def test_types_of_tensors_on_a_device_are_no_types_of_these():
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    assert torch.cuda.LongTensor.dtype is torch.int64
    for given in (torch.cuda.FloatTensor, "torch.cuda.FloatTensor"):
        for call in (torch.ones(1).type, torch.set_default_tensor_type):
            with pytest.raises(RuntimeError, match="device 'cuda' is not available"):
                call(given)
    assert torch.ones(1).type("torch.LongTensor").dtype is torch.int64


@pytest.mark.parametrize("scaler", [torch.amp.GradScaler, torch.cuda.amp.GradScaler])
def test_a_training_step_with_mixed_precision_runs_as_without(scaler):
    scaler, weight = scaler(), torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    with torch.autocast("cuda", dtype=torch.float16), torch.cuda.amp.autocast():
        loss = (weight * 3).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [-0.5, -0.5] and scaler.get_scale() == 1.0
    scaler.load_state_dict(scaler.state_dict())


def test_autocast_decorates_functions():
    @torch.autocast("cuda")
    def double(x):
        return x * 2

    assert double(torch.ones(1)).item() == 2.0


@pytest.mark.parametrize("index", ["a", 0.5, [0]])
def test_the_index_of_a_device_is_a_whole_number(index):
    with pytest.raises(TypeError, match="the index of a device"):
        torch.device("cpu", index)
    assert torch.device("cpu", 1).index == 1


def test_a_device_is_a_context_in_which_tensors_are_made() -> None:
    with torch.device("cpu") as device:
        made = torch.nn.Linear(2, 1)
    assert made.weight.device == device == torch.device("cpu")


def test_devices_that_are_not_there_can_be_named_and_nothing_else() -> None:
    named = torch.device("cuda:1")
    assert (named.type, named.index, str(named)) == ("cuda", 1, "cuda:1")
    assert named == torch.device("cuda", 1) == torch.device(named) and named != torch.device("cuda")
    assert hash(named) == hash(torch.device("cuda", 1)) and torch.device("cpu") != torch.device("cpu", 0)
    assert eval(repr(named), {"device": torch.device}) == named
    uses = [
        lambda: torch.ones(1, device=named),
        lambda: torch.ones(1).to(named),
        lambda: torch.nn.Linear(1, 1).to(named),
        lambda: named.__enter__(),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="'cuda:1' is not available"):
            use()
    assert torch.ones(1, device=torch.device("cpu", 0)).device == torch.device("cpu")


def test_the_type_of_a_device_is_a_name() -> None:
    for given in (None, 0, [0]):
        with pytest.raises(TypeError, match="the type is a name"):
            torch.device(given)


@pytest.mark.parametrize(
    "given", [("gpu",), ("cuda:x",), ("cuda:-1",), ("cuda", -1), ("cuda:1", 1), ("cuda:01",)]
)
def test_what_names_no_device_raises(given: tuple) -> None:
    with pytest.raises(RuntimeError, match="device: "):
        torch.device(*given)
