"""Views, copies, and tensors put together from others."""
