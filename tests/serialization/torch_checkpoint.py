"""What the files in ``data`` hold; run with PyTorch installed, it writes them again.

    python tests/serialization/torch_checkpoint.py

``zip.pt`` is in today's format, ``stream.pt`` in the one before PyTorch 1.6. ``modules.pt`` has whole modules with a
result of each, and an optimizer. All were written by PyTorch 2.13.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data"
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


def content(torch: Any) -> dict[str, Any]:
    """The state, made with ``torch``: PyTorch, or Twofold under its name."""
    table = torch.arange(6.0).reshape(2, 3)
    weight = torch.nn.Parameter(torch.tensor([[0.5, -1.5]]))
    momentum = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    momentum.state[weight]["momentum_buffer"] = torch.tensor([[0.25, 4.0]])
    return {
        "dtypes": {name: torch.tensor([0, 1, 3]).to(getattr(torch, name)) for name in DTYPES},
        "table": table,
        "transposed": table.t(),
        "part": table[1, 1:],
        "column": table[:, 1],
        "weight": weight,
        "frozen": torch.nn.Parameter(torch.ones(1), requires_grad=False),
        "empty": torch.zeros(0, 3),
        "number": torch.tensor(3),
        "nested": [1, (2.5, None, True), {"name": "text", 4: b"bytes"}],
        "ordered": OrderedDict([("b", 1), ("a", -(10**20))]),
        "set": {1, 2},
        "complex": 1 + 2j,
        "optimizer": momentum.state_dict(),
    }


def modules(torch: Any) -> dict[str, Any]:
    """Modules by name."""
    nn = torch.nn
    block = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )
    return {
        "layers": nn.Sequential(
            nn.Linear(16, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout(0.1), nn.Linear(4, 2)
        ),
        "convolution": nn.Sequential(nn.Unflatten(1, (1, 4, 4)), block),
        "recurrent": nn.Sequential(
            nn.Unflatten(1, (4, 4)), nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True)
        ),
        "transformer": nn.Sequential(
            nn.Unflatten(1, (4, 4)), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        ),
    }


def first_result(module: Any, x: Any) -> Any:
    """The result of a module, or the first of them."""
    found = module(x)
    return found[0] if isinstance(found, tuple) else found


if __name__ == "__main__":
    import torch as peer

    DATA.mkdir(exist_ok=True)
    peer.manual_seed(0)
    made = content(peer)
    made["conjugated"] = peer.tensor([1 + 2j]).conj()
    made["expanded"] = peer.tensor([7.0]).expand(4)
    peer.save(made, DATA / "zip.pt")
    peer.save(made, DATA / "stream.pt", _use_new_zipfile_serialization=False)
    x, by_name = peer.randn(2, 16), modules(peer)
    for module in by_name.values():
        module.eval()
    results = {name: first_result(module, x).detach() for name, module in by_name.items()}
    optimizer = peer.optim.Adam(by_name["layers"].parameters(), lr=0.5)
    peer.save({"x": x, "modules": by_name, "results": results, "optimizer": optimizer}, DATA / "modules.pt")
