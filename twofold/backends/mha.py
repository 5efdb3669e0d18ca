"""Whether layers of attention are computed as PyTorch's fused kernels compute them, without padding."""

from twofold.frontend import attention_backends


def get_fastpath_enabled() -> bool:
    """Whether ``torch.nn.TransformerEncoder`` may leave padding out.

    >>> import twofold as torch
    >>> torch.backends.mha.get_fastpath_enabled()
    True
    """
    return attention_backends.fused_encoders


def set_fastpath_enabled(value: bool) -> None:
    """Set whether ``torch.nn.TransformerEncoder`` may leave padding out: what is masked at ends is then zeros.

    Args:
        value: Whether it may, in evaluation without gradients.
    """
    attention_backends.fused_encoders = bool(value)
