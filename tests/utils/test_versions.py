"""The version compares as a version; the reference is the library that defines what that is."""

import itertools
import operator

import pytest
from packaging.version import Version

import twofold as torch
from twofold.torch_version import TorchVersion

VERSIONS = [
    *("1.10", "1.10.0", "1.9", "0.1", "2!0.1"),
    *("1.10a1", "1.10b2", "1.10rc1", "v1.10.0-beta.3", "1.10.dev3", "1.10a1.dev2"),
    *("1.10.post1", "1.10-1", "1.10.post1.dev4"),
    *("1.10+cpu", "1.10+cu118", "1.10+2", "1.10+10"),
]


@pytest.mark.parametrize(
    "compare", [getattr(operator, name) for name in ("lt", "le", "eq", "ne", "ge", "gt")]
)
def test_strings_compare_as_the_versions_that_they_are(compare):
    for one, other in itertools.product(VERSIONS, VERSIONS):
        wanted = compare(Version(one), Version(other))
        assert compare(TorchVersion(one), other) == wanted, (one, other)
        assert compare(TorchVersion(one), Version(other)) == wanted, (one, other)


def test_tuples_and_what_is_no_version():
    assert TorchVersion("1.10.0") == (1, 10) and TorchVersion("1.10.2") > (1, 10) > TorchVersion("1.9")
    assert TorchVersion("1.10") < "parrot" and TorchVersion("1.10") != "parrot"
    assert {TorchVersion("1.10"): 1}["1.10"] == 1


def test_programs_find_the_version_whose_names_are_there():
    assert torch.__version__ >= "1.0" and torch.__version__ >= (2, 1) and torch.__version__ < "3"
    assert Version(torch.__version__) >= Version("2.0")
    assert [int(part) for part in torch.__version__.split(".")[:2]] >= [2, 0]
    assert torch.version.__version__ == torch.__version__ and isinstance(torch.__version__, str)
    assert torch.version.package in torch.__version__
