"""What tensors look like: the texts are those that PyTorch prints."""

import numpy
import pytest

import twofold as torch


@pytest.fixture(autouse=True)
def _usual():
    yield
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "tensor, text",
    [
        (lambda: torch.tensor([True]), "tensor([True])"),
        (lambda: torch.tensor([True, False]), "tensor([ True, False])"),
        (lambda: torch.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
        (
            lambda: torch.zeros(2000, dtype=torch.bool),
            "tensor([False, False, False,  ..., False, False, False])",
        ),
        (
            lambda: torch.arange(3000.0),
            "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 2.9970e+03, 2.9980e+03,\n        2.9990e+03])",
        ),
        (
            lambda: torch.arange(4000).reshape(40, 100)[:, :50].reshape(10, 200),
            "tensor([[   0,    1,    2,  ...,  347,  348,  349],\n"
            "        [ 400,  401,  402,  ...,  747,  748,  749],\n"
            "        [ 800,  801,  802,  ..., 1147, 1148, 1149],\n"
            "        ...,\n"
            "        [2800, 2801, 2802,  ..., 3147, 3148, 3149],\n"
            "        [3200, 3201, 3202,  ..., 3547, 3548, 3549],\n"
            "        [3600, 3601, 3602,  ..., 3947, 3948, 3949]])",
        ),
        (lambda: torch.tensor([1.0, 2000.0]), "tensor([1.0000e+00, 2.0000e+03])"),
        (lambda: torch.tensor([1.0, 900.0]), "tensor([  1., 900.])"),
        (lambda: torch.tensor([0.5, -100.0]), "tensor([   0.5000, -100.0000])"),
        (lambda: torch.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (lambda: torch.tensor([float("nan"), 1.0]), "tensor([nan, 1.])"),
        (lambda: torch.tensor([1 + 2j, -0.5j]), "tensor([1.+2.0000j, -0.-0.5000j])"),
        (lambda: torch.zeros(2, 0), "tensor([], size=(2, 0))"),
        (
            lambda: torch.full((9,), 1.25, requires_grad=True),
            "tensor([1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500],\n"
            "       requires_grad=True)",
        ),
        (lambda: torch.zeros(1, 1, 2), "tensor([[[0., 0.]]])"),
        (lambda: torch.zeros(2, 2, 1), "tensor([[[0.],\n         [0.]],\n\n        [[0.],\n         [0.]]])"),
    ],
)
def test_texts(tensor, text):
    assert repr(tensor()) == text


def test_options_choose_the_form():
    torch.set_printoptions(precision=2, sci_mode=True)
    assert repr(torch.tensor([1.5, 2.0])) == "tensor([1.50e+00, 2.00e+00])"
    torch.set_printoptions(sci_mode=False)
    assert repr(torch.tensor([0.5, 1e5])) == "tensor([     0.50, 100000.00])"
    torch.set_printoptions(threshold=5, edgeitems=1)
    assert (
        repr(torch.arange(20).reshape(4, 5))
        == "tensor([[ 0,  ...,  4],\n        ...,\n        [15,  ..., 19]])"
    )


def test_the_form_is_chosen_by_the_values_again():
    torch.set_printoptions(sci_mode=False)
    torch.set_printoptions(profile="default")
    assert repr(torch.tensor([1e-7])) == "tensor([1.0000e-07])"


def test_parameters_are_listed():
    found = torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.zeros(2, 3)), "b": torch.zeros(1)})
    lines = [
        "ParameterDict(",
        "    (a): Parameter containing: [torch.FloatTensor of size 2x3]",
        "    (b): Parameter containing: [torch.FloatTensor of size 1]",
        ")",
    ]
    assert repr(found) == "\n".join(lines)
    assert repr(torch.nn.ParameterDict()) == "ParameterDict()"


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor])
def test_python_floats_are_of_the_default_dtype(make):
    torch.set_default_dtype(torch.bfloat16)
    assert make(0.1).dtype is torch.bfloat16 and make([[0.1, 1]]).dtype is torch.bfloat16
    assert make(0.1).item() == 0.10009765625
    assert make(1).dtype is torch.int64 and make(True).dtype is torch.bool
    assert make(numpy.float32(0.1)).dtype is torch.float32
    assert make([torch.tensor(0.1, dtype=torch.float32)]).dtype is torch.float32


@pytest.mark.parametrize("condition", [[1, 0], [1.0, 0.0], 1])
def test_a_condition_is_of_booleans(condition):
    x, y = torch.ones(2), torch.zeros(2)
    given = torch.tensor(condition)
    for choose in (lambda: torch.where(given, x, y), lambda: x.where(given, y)):
        with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
            choose()
    bytes_ = torch.tensor([1, 0], dtype=torch.uint8)
    assert torch.where(bytes_, x, y).tolist() == torch.where(bytes_ != 0, x, y).tolist() == [1.0, 0.0]
