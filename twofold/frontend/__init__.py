"""Define-by-run: the tensor handle, its functions and methods, gradients, indexing and interchange."""
