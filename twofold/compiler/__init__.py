"""Graph to program: scheduling, lowering to LLVM IR, machine code, linking of bodies, and disk caches."""
