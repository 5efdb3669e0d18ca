"""Tensors created, reshaped, indexed, chosen from and combined under TensorFlow's names."""
