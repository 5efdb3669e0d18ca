"""Element-wise operations and what is written with them alone."""
