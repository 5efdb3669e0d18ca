"""Names that programs import from PyTorch's files."""

import pytest

import twofold as torch


def test_weights_by_address(tmp_path):
    from twofold.utils import model_zoo

    torch.save({"w": torch.ones(2)}, tmp_path / "net.pth")
    found = model_zoo.load_url((tmp_path / "net.pth").as_uri(), model_dir=tmp_path / "kept")
    assert found["w"].tolist() == [1, 1] and (tmp_path / "kept" / "net.pth").exists()


def test_handles_of_hooks():
    from twofold.utils.hooks import RemovableHandle

    handle = torch.nn.Linear(1, 1).register_forward_hook(lambda *args: None)
    assert isinstance(handle, RemovableHandle)


def test_modules_called_with_other_parameters():
    from twofold.nn.utils import stateless

    layer = torch.nn.Linear(1, 1)
    given = {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}
    assert stateless.functional_call(layer, given, (torch.tensor([[3.0]]),)).tolist() == [[7.0]]


def test_parameters_as_one_vector_and_back():
    shapes = [torch.rand(2, 3), torch.rand(()), torch.rand(0), torch.rand(4)]
    flat = torch._utils._flatten_dense_tensors(shapes)
    assert flat.shape == (11,)
    parts = torch._utils._unflatten_dense_tensors(flat, shapes)
    assert all(torch.equal(one, other) and one.shape == other.shape for one, other in zip(parts, shapes))
    flat.zero_()
    assert all((one == 0).all() for one in parts)


def test_functions_and_types():
    assert torch.functional.einsum("i,i->", torch.ones(2), torch.ones(2)) == 2
    assert isinstance(1.5, torch.types.Number) and isinstance(torch.device("cpu"), torch.types.Device)


def test_libraries_that_are_not_used():
    found = [torch.xpu, torch.backends.mkldnn, torch.backends.mkl, torch.backends.openmp]
    assert not any(one.is_available() for one in found) and torch.xpu.device_count() == 0
    assert torch.cuda.get_rng_state_all() == []
    torch.cuda.set_rng_state_all([])
    with pytest.raises(RuntimeError, match="cuda"):
        torch.cuda.set_rng_state_all([torch.get_rng_state()])


def test_ways_to_compute_attention_that_are_told():
    for way in ("flash", "math", "mem_efficient", "cudnn"):
        enable = getattr(torch.backends.cuda, f"enable_{way}_sdp")
        asked = getattr(torch.backends.cuda, f"{way}_sdp_enabled")
        assert asked() is True
        enable(False)
        assert asked() is False
        enable(True)


def test_attention_needs_a_backend_that_computes_it_on_a_cpu():
    # PyTorch 2.13 on a CPU: math, or flash attention of four axes without dropout
    backend, kernel = torch.nn.attention.SDPBackend, torch.nn.attention.sdpa_kernel
    attend, x = torch.nn.functional.scaled_dot_product_attention, torch.ones(1, 1, 2, 4)
    assert attend(x, x, x).shape == x.shape
    for none in ([backend.EFFICIENT_ATTENTION], [backend.CUDNN_ATTENTION], []):
        with kernel(none), pytest.raises(RuntimeError, match="No viable backend"):
            attend(x, x, x)
    with kernel([backend.FLASH_ATTENTION, backend.CUDNN_ATTENTION]):
        assert torch.backends.cuda.flash_sdp_enabled() and not torch.backends.cuda.math_sdp_enabled()
        assert attend(x, x, x, is_causal=True).shape == x.shape
        for given, options in ((x, {"dropout_p": 0.5}), (x[0], {})):
            with pytest.raises(RuntimeError, match="No available kernel"):
                attend(given, given, given, **options)
    with kernel(backend.MATH):
        assert attend(x[0], x[0], x[0], dropout_p=0.5).shape == x[0].shape
    with torch.backends.cuda.sdp_kernel(enable_flash=False, enable_math=False):
        layer = torch.nn.MultiheadAttention(4, 1)
        assert layer(x[0], x[0], x[0])[0].shape == x[0].shape  # with weights it computes them itself
        with pytest.raises(RuntimeError, match="No viable backend"):
            layer(x[0], x[0], x[0], need_weights=False)
    assert torch.backends.cuda.math_sdp_enabled() and attend(x, x, x).shape == x.shape


def test_frozen_modules():
    layer = torch.nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(layer)
    assert torch.jit.optimize_for_inference(torch.jit.freeze(layer.eval())) is layer
    assert torch.jit.script_if_tracing(len) is len
