"""Whole programs give TensorFlow's numbers."""

import importlib.util
import json
from pathlib import Path

import numpy
import pytest

import twofold.static as tf

_SPEC = importlib.util.spec_from_file_location(
    "neighbouring_programs", Path(__file__).with_name("neighbouring_programs.py")
)
programs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(programs)
EXPECTED = json.loads(programs.RECORDED.read_text())


def compare(found, expected):
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected)
        for one, two in zip(found, expected):
            compare(one, two)
    elif isinstance(expected, float):
        numpy.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    else:
        assert found == expected


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda program: program.__name__)
def test_numbers_are_those_of_tensorflow(program):
    compare(programs.run(tf, program), EXPECTED[program.__name__])
