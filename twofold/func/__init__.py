"""Transforms of functions, with the names and meaning of ``torch.func``.

Each takes a function and gives a function. They stand inside each other in any order: ``vmap(grad(f))`` gives a
gradient for every sample, ``jacfwd(jacrev(f))`` is the Hessian.
"""

from twofold.func._batching import vmap
from twofold.func._gradients import grad, grad_and_value, jvp, linearize, vjp
from twofold.func._jacobians import hessian, jacfwd, jacrev
from twofold.func._modules import functional_call, stack_module_state
from twofold.func._purity import functionalize
from twofold.tracebacks import guard_namespace as _guard_namespace

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

_guard_namespace(globals())
