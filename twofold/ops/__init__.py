"""The operations: one entry each, from which functions, methods, gradients, code and tests are derived.

Importing the package registers the entries of all its modules; a new module needs no mention anywhere.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, __name__ + "."):
    import_module(_module.name)

# when all entries are there
import_module(__name__ + ".library_notes").add_notes()
