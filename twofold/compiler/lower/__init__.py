"""Lowering: loop nests written as LLVM IR text."""
