"""Whether variables are resources: fetched as they were when read, see ``Session.run``."""

from __future__ import annotations


class _Resources:
    """Whether variables are resources unless they say otherwise."""

    default = False


resources = _Resources()


def enable_resource_variables() -> None:
    """Make variables resources unless they say otherwise: fetched as they were when read, see ``Session.run``."""
    resources.default = True


def disable_resource_variables() -> None:
    """Make variables references unless they say otherwise (as they are from the start), see ``Session.run``."""
    resources.default = False


def resource_variables_enabled() -> bool:
    """Whether variables are resources unless they say otherwise."""
    return resources.default
