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
    inputs = [torch.ones(size, 1) for size in (1, 2, 3, 4)]
    seen: list[int] = []
    called = layer.register_forward_hook(lambda *given: seen.append(len(given[-1])))
    torch.jit.trace(layer, inputs[0], None, False, [inputs[1]])
    torch.jit.trace(layer, example_kwarg_inputs={"input": inputs[2]}, check_tolerance=1e-3)
    torch.jit.trace_module(layer, {"forward": inputs[3]}, check_inputs=[{"forward": inputs[0]}])
    called.remove()
    assert seen == [1, 2, 3, 4, 1] and issubclass(torch.jit.Error, Exception)


def test_helpers_of_losses_and_layers_that_programs_copy():
    from twofold.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
    from twofold.nn.modules.module import _addindent

    reduction = torch.nn.functional._Reduction
    assert [reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="not a valid value"):
        reduction.get_enum("median")
    flags = [(None, None), (False, None), (True, True), (False, False), (None, False)]
    found = [reduction.legacy_get_string(*pair, emit_warning=False) for pair in flags]
    assert found == ["mean", "sum", "mean", "none", "none"]
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert reduction.legacy_get_enum(False, True) == 2
    assert torch.nn.functional.has_torch_function is torch.overrides.has_torch_function
    assert _addindent("a\nb\nc", 2) == "a\n  b\n  c"
    factor, vectors = torch.tensor([[2.0, 0.0], [1.0, 3.0]]), torch.tensor([[4.0, 5.0], [2.0, 1.0]])
    assert _batch_mv(factor, vectors).tolist() == [[8, 19], [4, 5]]
    assert _batch_mahalanobis(factor, _batch_mv(factor, vectors)).tolist() == [41, 5]
    assert torch.serialization.default_restore_location(factor, "cpu") is factor
    with pytest.raises(RuntimeError):
        torch.serialization.default_restore_location(factor, "cuda:0")


def test_settings_that_each_group_must_give():
    class Descent(torch.optim.Optimizer):
        def __init__(self, params, lr=torch.optim.optimizer.required):
            super().__init__(params, {"lr": lr})

    weight = torch.nn.Parameter(torch.ones(1))
    assert repr(torch.optim.optimizer.required) == "<required parameter>"
    assert Descent([weight], lr=0.5).param_groups[0]["lr"] == 0.5
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        Descent([weight])


def test_memory_as_elements_of_a_type():
    kept = torch.ByteStorage.from_buffer(b"abc")
    made = torch.ByteTensor(kept)
    made[0] = 7
    assert kept.tolist() == [7, 98, 99] and isinstance(kept, torch.ByteStorage)
    assert isinstance(torch.ones(2).storage(), torch.FloatStorage) and not isinstance(
        kept, torch.FloatStorage
    )
    assert torch.ShortStorage.from_buffer(b"\x01\x02\x03\x04", "big", 1, 2).tolist() == [0x0304]
    assert torch.LongStorage([1, 2]).tolist() == [1, 2] and torch.FloatStorage(3).size() == 3
    with pytest.raises(RuntimeError, match="uint8"):
        torch.FloatTensor(kept)
    with pytest.raises(ValueError, match="byte_order"):
        torch.FloatStorage.from_buffer(b"abcd")


def test_switches_within_a_block():
    with torch.backends.cudnn.flags(enabled=False, benchmark_limit=3):
        assert not torch.backends.cudnn.enabled and torch.backends.cudnn.benchmark_limit == 3
    assert torch.backends.cudnn.enabled and not torch.backends.cudnn.is_acceptable(torch.ones(1))


def test_cards_that_are_not_there():
    with torch.cuda.device(-1), torch.cuda.device_of(torch.ones(1)):
        pass
    with pytest.raises(RuntimeError, match="cuda"), torch.cuda.device(0):
        pass
    assert torch.utils.checkpoint.get_device_states(torch.ones(1)) == ([], [])
    torch.utils.checkpoint.set_device_states([], [])
    with pytest.raises(RuntimeError, match="cuda"):
        torch.utils.checkpoint.set_device_states([0], [torch.get_rng_state()])
    with pytest.raises(RuntimeError, match="cuda"):
        torch.nn.parallel.replicate(torch.nn.Linear(1, 1), [0])
    doubled = torch.nn.parallel.parallel_apply(
        [torch.add, torch.mul], [(torch.ones(1), 2), (torch.ones(1), 3)]
    )
    assert [one.item() for one in doubled] == [3, 3]


def test_names_of_other_files():
    from twofold.cuda.amp.autocast_mode import custom_fwd
    from twofold.cuda.amp.grad_scaler import GradScaler
    from twofold.nn.modules.module import _IncompatibleKeys
    from twofold.nn.parallel.scatter_gather import scatter_kwargs
    from twofold.utils.data._utils.collate import default_collate

    from twofold.nn.parameter import UninitializedParameter, is_lazy

    assert default_collate([1, 2]).tolist() == [1, 2] and callable(custom_fwd) and callable(scatter_kwargs)
    assert issubclass(GradScaler, torch.amp.GradScaler)
    assert isinstance(torch.nn.Linear(1, 1).load_state_dict({}, strict=False), _IncompatibleKeys)
    assert is_lazy(UninitializedParameter()) and not is_lazy(torch.nn.Parameter(torch.ones(1)))
    assert not torch.onnx.is_in_onnx_export() and torch.jit.Attribute(1, int).value == 1
    assert torch.get_autocast_cpu_dtype() is torch.bfloat16 and not torch.is_autocast_cpu_enabled()
    torch._dynamo.config.suppress_errors = True
    torch.cpu.synchronize()
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1


def test_triangles_as_vectors():
    from twofold.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

    for diag, count in ((0, 6), (-1, 3), (1, 8)):
        vec = torch.arange(2.0 * count).reshape(2, count)
        matrix = vec_to_tril_matrix(vec, diag)
        assert matrix.shape == (2, 3, 3) and torch.equal(matrix.tril(diag), matrix)
        assert torch.equal(tril_matrix_to_vec(matrix, diag), vec)
    with pytest.raises(ValueError, match="cannot be expressed"):
        vec_to_tril_matrix(torch.ones(4))
    with pytest.raises(ValueError, match="outside"):
        tril_matrix_to_vec(torch.ones(2, 2), 2)


def test_activations_of_the_package():
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(torch.rrelu(x, 0.1, 0.3), torch.tensor([-0.2, 2.0]))
    for name in ("selu", "celu", "rrelu", "threshold"):
        more = (0.5, 7.0) if name == "threshold" else ()
        changed = x.clone()
        assert getattr(torch, f"{name}_")(changed, *more) is changed
        torch.testing.assert_close(changed, getattr(torch.nn.functional, name)(x, *more))
    assert torch.bilinear(torch.ones(1, 2), torch.ones(1, 3), torch.ones(4, 2, 3)).tolist() == [[6] * 4]


def test_threads_and_runs():
    torch.set_num_interop_threads(2)
    assert torch.get_num_interop_threads() == 1 and not torch.is_deterministic_algorithms_warn_only_enabled()
    with pytest.raises(RuntimeError, match="positive"):
        torch.set_num_interop_threads(0)


def test_what_is_asked_of_the_core():
    assert torch._C._get_tracing_state() is None and torch._C._log_api_usage_once("library.name") is None
    assert torch._C._jit_set_profiling_executor(False) is True
    assert torch._C._jit_set_profiling_executor(True) is False
    assert torch._C.Generator is torch.Generator


def test_what_a_program_asks_of_the_compiler_of_torch():
    from twofold._C._functorch import is_batchedtensor
    from twofold._dynamo.eval_frame import OptimizedModule
    from twofold._dynamo.utils import is_compile_supported
    from twofold._subclasses.fake_tensor import FakeTensor, is_fake

    x = torch.ones(3)
    for mark in (torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic, torch._dynamo.mark_static):
        mark(x, 0)
    torch._dynamo.mark_static_address(x)
    with torch._dynamo.config.patch(verbose=True), torch._dynamo.config.patch("cache_size_limit", 64):
        assert torch._dynamo.config.verbose and torch._dynamo.config.cache_size_limit == 64
    assert not torch._dynamo.config.verbose and torch._dynamo.config.cache_size_limit == 8
    assert not isinstance(torch.compile(torch.nn.ReLU()), OptimizedModule) and is_compile_supported("cpu")
    assert not is_fake(x) and not isinstance(x, FakeTensor) and not is_batchedtensor(x)
    assert not any(isinstance(x.size(0), one) for one in (torch.SymInt, torch.SymFloat, torch.SymBool))
    assert not any(isinstance(x, one) for one in (torch._C.Graph, torch._C.Value, torch.TensorType))
    active = torch._C._are_functorch_transforms_active
    assert not active() and torch.vmap(lambda row: row * active())(x).tolist() == [1.0] * 3


def test_names_of_further_files():
    from twofold.distributions.multivariate_normal import Distribution, MultivariateNormal
    from twofold.jit.annotations import BroadcastingList2
    from twofold.utils.model_zoo import tqdm

    from twofold.distributions.transforms import _clipped_sigmoid
    from twofold.serialization import DEFAULT_PROTOCOL
    from twofold.storage import UntypedStorage
    from twofold.types import _dtype, _layout, _size

    assert issubclass(MultivariateNormal, Distribution) and DEFAULT_PROTOCOL == 2
    assert _clipped_sigmoid(torch.tensor(1e3)).item() < 1 and BroadcastingList2[int]
    assert isinstance(torch.ones(1).untyped_storage(), UntypedStorage) and len(torch.UntypedStorage(5)) == 5
    assert isinstance(torch.float32, _dtype) and isinstance(torch.strided, _layout)
    assert isinstance(torch.Size([1]), _size) and list(tqdm([1, 2], disable=True)) == [1, 2]
    assert torch.distributed.Backend("NCCL") == torch.distributed.Backend.NCCL == "nccl"
    with pytest.raises(ValueError, match="Invalid backend"):
        torch.distributed.Backend("post")


def test_types_of_values_as_scripts_ask_for_them():
    kinds = (
        ([1, 2], list[int]),
        ((1, "a"), tuple[int, str]),
        ({"a": 1}, dict[str, int]),
        (None, int | None),
    )
    assert all(torch.jit.isinstance(value, kind) for value, kind in kinds)
    wrong = ([1, "a"], list[int]), ((1,), tuple[int, str]), ({1: 1}, dict[str, int]), (1.5, int | str)
    assert not any(torch.jit.isinstance(value, kind) for value, kind in wrong)

    @torch.jit._script_if_tracing
    def double(x):
        return x * 2

    assert double(torch.ones(1)).item() == 2
