"""What several tests of declared graphs look at."""

import pytest

from twofold.static.session import lowering


@pytest.fixture
def bodies(monkeypatch):
    """The names of operations whose bodies run."""
    found = []
    call = lowering.call_body

    def counted(operation, *arguments):
        found.append(operation.name)
        return call(operation, *arguments)

    monkeypatch.setattr(lowering, "call_body", counted)
    return found
