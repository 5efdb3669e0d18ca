"""Functions in a declared graph: bodies of choices and loops, those with gradients of their own, calls of Python."""
