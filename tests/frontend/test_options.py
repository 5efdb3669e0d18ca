"""Options of tensors and layers that there is no second choice for: what would change the result raises."""

from __future__ import annotations

import warnings

import pytest

import twofold as torch

LAYERS = {
    "Linear": (2, 2),
    "Bilinear": (2, 2, 2),
    "Conv1d": (1, 1, 1),
    "ConvTranspose2d": (1, 1, 1),
    "BatchNorm1d": (2,),
    "LazyBatchNorm1d": (),
    "InstanceNorm2d": (2,),
    "GroupNorm": (1, 2),
    "LayerNorm": (2,),
    "RMSNorm": (2,),
    "Embedding": (3, 2),
    "EmbeddingBag": (3, 2),
    "LSTM": (2, 2),
    "GRUCell": (2, 2),
    "MultiheadAttention": (2, 1),
    "Transformer": (2, 1, 1, 1, 2),
    "TransformerEncoderLayer": (2, 1, 2),
    "TransformerDecoderLayer": (2, 1, 2),
    "PReLU": (),
    "AdaptiveLogSoftmaxWithLoss": (2, 4, [2]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_on_other_devices(name: str) -> None:
    with pytest.raises(RuntimeError, match="device 'cuda' is not available"):
        getattr(torch.nn, name)(*LAYERS[name], device="cuda")
    getattr(torch.nn, name)(*LAYERS[name], device="cpu")


@pytest.mark.parametrize(
    "call",
    [
        lambda **options: torch.zeros(2, **options),
        lambda **options: torch.zeros_like(torch.ones(2), **options),
        lambda **options: torch.arange(3, **options),
        lambda **options: torch.rand(2, **options),
        lambda **options: torch.randint(0, 3, (2,), **options),
        lambda **options: torch.hann_window(3, **options),
        lambda **options: torch.empty_strided((2,), (1,), **options),
        lambda **options: torch.ones(1).new_zeros(2, **options),
        lambda **options: torch.ones(1).new_full((2,), 3, **options),
        lambda **options: torch.ones(1).new_tensor([1.0], **options),
        lambda **options: torch.ones(1).new_empty_strided((2,), (1,), **options),
        lambda **options: torch.scalar_tensor(1.0, **options),
        lambda **options: torch.range(0, 1, **options),
    ],
)
def test_new_tensors(call) -> None:  # type: ignore[no-untyped-def]
    for options in ({"device": "cuda"}, {"pin_memory": True}, {"layout": "sparse"}):
        with pytest.raises(RuntimeError, match="not available|requires an accelerator"):
            call(**options)
    with pytest.raises(TypeError, match="nonsense"):
        call(nonsense=1)
    assert call(device="cpu", layout=torch.strided, pin_memory=False).device == torch.device("cpu")


def test_memory_formats() -> None:
    x = torch.ones(2, 3)
    for call in (x.clone, x.contiguous, x.float, x.to, x.cpu):
        with pytest.raises(RuntimeError, match="channels_last"):
            call(memory_format=torch.channels_last)
        with pytest.raises(ValueError, match="memory_format"):
            call(memory_format=3)
    with pytest.raises(RuntimeError, match="channels_last_3d"):
        torch.empty(2, 3, memory_format=torch.channels_last_3d)
    wanted = (24, 1, 8, 2)
    images = torch.ones(1, 2, 3, 4)
    assert images.clone(memory_format=torch.channels_last).stride() == wanted
    assert images.to(memory_format=torch.channels_last).stride() == wanted
    assert images.double(memory_format=torch.channels_last).stride() == wanted
    assert torch.zeros_like(images, memory_format=torch.channels_last).stride() == wanted
    assert torch.randn_like(images, memory_format=torch.channels_last).stride() == wanted
    layer = torch.nn.Conv2d(2, 2, 2).to(memory_format=torch.channels_last)
    assert layer(images).shape == (1, 2, 2, 3)


def test_flags_of_to() -> None:
    x = torch.ones(2)
    assert x.to(torch.float32) is x
    assert x.to(torch.float32, False, True) is not x
    assert x.to("cpu", non_blocking=True, copy=True) is not x
    with pytest.raises(TypeError):
        x.to(torch.float32, nonsense=1)


def test_pinned_memory() -> None:
    with pytest.raises(RuntimeError, match="accelerator"):
        torch.ones(2).pin_memory()
    with pytest.raises(RuntimeError, match="accelerator"):
        torch.tensor([1.0], pin_memory=True)


def test_compile_options() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    for wrong in ({"backend": "tensorrt"}, {"mode": "fastest"}, {"options": {"triton.cudagraphs": True}}):
        with pytest.raises(ValueError):
            torch.compile(double, **wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            torch.nn.Linear(2, 2).compile(**wrong)
    assert torch.compile(double, backend="eager") is double
    assert torch.compile(double, disable=True) is double
    assert torch.compile(double, mode="max-autotune")(torch.ones(2)).tolist() == [2, 2]
    assert torch.compile(backend="eager")(double) is double


def test_workers_of_loaders() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(4))
    loader = torch.utils.data.DataLoader
    for wrong in (
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"multiprocessing_context": "fork"},
        {"num_workers": 1, "prefetch_factor": -1},
    ):
        with pytest.raises(ValueError):
            loader(data, **wrong)
    with pytest.warns(UserWarning, match="pin_memory"):
        loader(data, pin_memory=True)
    seen = []

    class Watched(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> int:
            info = torch.utils.data.get_worker_info()
            seen.append(info and (info.id, info.num_workers, info.dataset is watched))
            return index

    watched = Watched()
    started: list[int] = []
    batches = loader(watched, 2, num_workers=2, worker_init_fn=started.append, prefetch_factor=4)
    assert [batch.tolist() for batch in batches] == [[0, 1], [2]]
    assert seen == [(0, 1, True)] * 3 and started == [0]
    assert torch.utils.data.get_worker_info() is None
    assert [batch.tolist() for batch in loader(watched, 3)] == [[0, 1, 2]] and seen[3:] == [None] * 3


def test_hooks_that_are_always_called() -> None:
    class Fails(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise KeyError("inside")

    seen: list[object] = []
    layer = Fails()
    layer.register_forward_hook(lambda *call: seen.append("never"))
    layer.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    with pytest.raises(KeyError):
        layer(torch.ones(1))
    assert seen == [None]


def test_sparse_adam_takes_sparse_gradients() -> None:
    for sparse in (True, False):
        table = torch.nn.Embedding(4, 2, sparse=sparse)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        before = table.weight.detach().clone()
        table(torch.tensor([1, 1])).sum().backward()
        if sparse:
            optimizer.step()
            assert (table.weight != before).any(1).tolist() == [False, True, False, False]
        else:
            with pytest.raises(RuntimeError, match="does not support dense gradients"):
                optimizer.step()
    bag = torch.nn.EmbeddingBag(4, 2, mode="sum", sparse=True)
    bag(torch.tensor([[1, 2]])).sum().backward()
    torch.optim.SparseAdam(bag.parameters()).step()


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", "SGD", "SparseAdam"])
def test_settings_of_optimizers(name: str) -> None:
    made = getattr(torch.optim, name)

    def params() -> list[torch.Tensor]:
        return [torch.ones(2, requires_grad=True)]

    for setting in ({"lr": float("nan")}, {"lr": -1.0}, {"lr": torch.tensor([0.1, 0.2])}):
        with pytest.raises(ValueError, match="Invalid learning rate|Tensor lr must be 1-element"):
            made(params(), **setting)
    if name != "SGD":
        for eps in (-1.0, float("nan")):
            with pytest.raises(ValueError, match="Invalid epsilon value"):
                made(params(), eps=eps)
    if name in ("Adam", "AdamW", "SGD", "Adagrad"):
        with pytest.raises(RuntimeError, match="cannot be `True` together"):
            made(params(), foreach=True, fused=True)
    if name != "SparseAdam":
        with pytest.raises(NotImplementedError):
            made(params(), differentiable=True)
        with pytest.raises(ValueError, match="Invalid weight_decay value"):
            made(params(), weight_decay=-1.0)
    made(params(), lr=torch.tensor(0.5))


def test_print_profiles() -> None:
    try:
        torch.set_printoptions(profile="short")
        assert repr(torch.tensor([0.123456])) == "tensor([0.12])"
    finally:
        torch.set_printoptions(profile="default")
    torch.set_printoptions(profile="long")  # sets nothing
    assert repr(torch.tensor([0.123456])) == "tensor([0.1235])"


def test_what_a_card_would_be_asked() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.cuda.empty_cache()
        assert torch.cuda.memory_allocated() == 0
    with pytest.raises(RuntimeError):
        torch.cuda.synchronize()
    with pytest.raises(RuntimeError):
        torch.nn.Linear(1, 1).cuda()
    with pytest.raises(RuntimeError), torch.random.fork_rng(devices=[0]):
        pass
    with pytest.raises(ValueError):
        torch.linalg.svd(torch.ones(2, 2), driver="gesvd")
    with pytest.raises(ValueError):
        torch.cdist(torch.ones(2, 2), torch.ones(2, 2), compute_mode="fast")
