"""Public functions against independent references and identities."""

from __future__ import annotations

import every_one
import pytest
from compare import check_call
from declare import PUBLIC

from twofold.ops.base import FUNCTIONS

assert every_one


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_function(name: str) -> None:
    for check in PUBLIC[name]:
        for made in check.calls():
            check_call(name, FUNCTIONS[name], check, made)
