"""The operations: one entry each, from which functions, methods, gradients, code and tests are derived."""
