"""What a program needs around its graph: flags, files, logs, tests."""
