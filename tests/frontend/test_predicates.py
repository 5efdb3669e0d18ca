"""What programs ask about tensors and the machine; constants; tensors from other holders of numbers."""

import math

import numpy
import pytest

import twofold as torch


def test_constants_and_layouts_have_their_names():
    assert (torch.pi, torch.e, torch.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(torch.nan) and torch.newaxis is None
    assert torch.ones(2).layout is torch.strided and repr(torch.channels_last) == "twofold.channels_last"


def test_memory_formats_change_nothing():
    x = torch.ones(1, 2, 2, 2)
    for made in (
        x.contiguous(memory_format=torch.channels_last),
        x.to(memory_format=torch.channels_last),
        torch.clone(x, memory_format=torch.preserve_format),
    ):
        assert torch.equal(made, x)


@pytest.mark.parametrize("name", ["is_meta", "is_sparse", "is_quantized", "is_nested", "is_mps", "is_cuda"])
def test_tensors_live_on_the_cpu_and_are_dense(name):
    assert torch.ones(2).is_cpu and not getattr(torch.ones(2), name)


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(RuntimeError, match="device 'cuda' is not available"):
        torch.ones(2).cuda()


def test_kinds_of_numbers_are_lost_only_on_the_way_down():
    kinds = [torch.bool, torch.int8, torch.float16, torch.complex64]
    for position, source in enumerate(kinds):
        assert [torch.can_cast(source, to) for to in kinds] == [k >= position for k in range(4)]
    assert torch.can_cast(torch.int64, torch.uint8)


def test_in_place_methods_are_functions_too():
    x = torch.zeros(2)
    assert torch.exp_(x) is x and x.tolist() == [1.0, 1.0]
    assert torch.clamp_(x, max=0.5).tolist() == [0.5, 0.5]


def test_clone_and_detach():
    x = torch.ones(2, requires_grad=True)
    torch.clone(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert not torch.detach(x).requires_grad


def test_asarray_shares_memory_unless_it_must_not():
    array = numpy.zeros(2, numpy.float32)
    shared, copied = torch.asarray(array), torch.asarray(array, copy=True)
    array[0] = 3
    assert shared.tolist() == [3.0, 0.0] and copied.tolist() == [0.0, 0.0]
    assert torch.asarray(array, dtype=torch.float64, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="copy=False"):
        torch.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        torch.asarray(array, dtype=torch.int64, copy=False)


def test_frombuffer_reads_from_an_offset():
    data = bytearray(numpy.arange(4, dtype=numpy.float32).tobytes())
    x = torch.frombuffer(data, dtype=torch.float32, count=2, offset=4)
    data[4:8] = bytes(4)
    assert x.tolist() == [1.0, 2.0]
    assert torch.frombuffer(b"\x80\x3f", dtype=torch.bfloat16).tolist() == [1.0]
