"""The CPU under PyTorch's names."""

from twofold.cpu import amp as amp
