"""Modules called with other parameters under the older name ``torch.nn.utils.stateless``."""

from twofold.func import functional_call as functional_call

__all__ = ["functional_call"]
