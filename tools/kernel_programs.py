"""Programs as most people write them, whose kernels are compiled when the package is built.

They stand for what is common: layers, losses and optimizers of the usual kinds, in sizes that kernels tell apart (one
sample, a few, many; rows shorter and longer than a vector). A kernel knows no sizes, so each serves many programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import twofold as torch
from twofold import nn
from twofold.nn import functional

Step = Callable[[], object]
RNG = numpy.random.default_rng(0)


def normal(*shape: int) -> torch.Tensor:
    """Random float32 numbers that come from NumPy, as data does."""
    return torch.from_numpy(RNG.normal(size=shape).astype(numpy.float32))


def classes(high: int, *shape: int) -> torch.Tensor:
    """Random class numbers."""
    return torch.from_numpy(RNG.integers(0, high, shape))


def optimizers(parameters: list[torch.Tensor]) -> Iterator[Any]:
    """The usual ones."""
    yield torch.optim.SGD(parameters, 0.01)
    yield torch.optim.SGD(parameters, 0.01, momentum=0.9, weight_decay=1e-4)
    yield torch.optim.Adam(parameters, 1e-3)
    yield torch.optim.AdamW(parameters, 1e-3)


def training(net: nn.Module, loss_of: Callable[[], torch.Tensor], every: bool = False) -> Iterator[Step]:
    """Steps of training with one optimizer or ``every`` one, with gradients clipped in the last of them."""
    parameters = list(net.parameters())
    found = list(optimizers(parameters)) if every else [torch.optim.Adam(parameters, 1e-3)]
    for number, optimizer in enumerate(found):

        def step(optimizer: Any = optimizer, clipped: bool = number > 0) -> object:
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            if clipped:
                nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            return loss.item()

        yield step


def perceptrons() -> Iterator[Step]:
    """Linear layers with the usual activations and losses."""
    activations = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.ELU)
    batches = (64, 1, 2, 5, 16, 200, 33)
    for activation, batch in zip(activations, batches, strict=True):
        for sizes in ((784, 256, 10), (20, 8, 3), (64, 32, 100), (5, 300, 1)):
            given, hidden, made = sizes
            net = nn.Sequential(
                nn.Linear(given, hidden),
                activation(),
                nn.Linear(hidden, hidden),
                activation(),
                nn.Dropout(0.1),
                nn.Linear(hidden, made),
            )
            x, y, target = normal(batch, given), classes(made, batch), normal(batch, made)
            yield from training(net, lambda n=net, x=x, y=y: functional.cross_entropy(n(x), y), made == 10)
            if batch in (64, 1, 2):
                yield from training(net, lambda n=net, x=x, t=target: functional.mse_loss(n(x), t))
                yield from training(
                    net,
                    lambda n=net, x=x, t=target: functional.binary_cross_entropy_with_logits(
                        n(x), t.sigmoid()
                    ),
                )
                yield from training(net, lambda n=net, x=x, y=y: -torch.log_softmax(n(x), -1)[:, 0].mean())
            yield lambda n=net, x=x, y=y: (n(x).argmax(1) == y).float().mean().item()


class Residual(nn.Module):
    """Two convolutions with a connection around them."""

    def __init__(self, given: int, inner: int, made: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(given, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, made, 1, bias=False),
            nn.BatchNorm2d(made),
        )
        self.around = nn.Sequential()
        if stride > 1 or given != made:
            self.around = nn.Sequential(nn.Conv2d(given, made, 1, stride, bias=False), nn.BatchNorm2d(made))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.around(x))


def layers() -> Iterator[Step]:
    """Linear layers and bottlenecks in the widths that most networks have."""
    widths = 64, 128, 256, 512, 1024
    for given, made in itertools.product(widths, repeat=2):
        layer = nn.Linear(given, made)
        for shape in ((1,), (16,), (100,), (256,), (2, 50)):
            x = normal(*shape, given).requires_grad_(True)
            yield lambda layer=layer, x=x: layer(x).sum().backward()
    for side, batch in itertools.product((1, 2, 3, 4, 7, 8, 14, 16, 28, 32), (2, 4, 8)):
        for given in (64, 256, 512, 1024, 2048):
            for inner, stride in itertools.product((64, 128, 256, 512), (1, 2)):
                fits = inner * 4 in (given, 2 * given) or given == inner
                if fits and batch * side * side * given <= 64 * 56 * 56:
                    block = Residual(given, inner, 4 * inner, stride)
                    x = normal(batch, given, side, side).requires_grad_(True)
                    yield lambda block=block, x=x: block(x).sum().backward()


def images() -> Iterator[Step]:
    """Convolution nets, small and residual, in training and evaluation."""
    for batch, side in ((2, 32), (8, 28), (1, 48)):
        nets = [
            nn.Sequential(
                nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
                nn.Flatten(), nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, 10),
            ),
            nn.Sequential(
                nn.Conv2d(3, 32, 7, 2, padding=3, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                Residual(32, 32, 64, 1), Residual(64, 32, 64, 1), Residual(64, 64, 128, 2), Residual(128, 128, 256, 2),
                Residual(256, 256, 512, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
            ),
            nn.Sequential(
                nn.Conv2d(3, 16, 3, 2, padding=1), nn.BatchNorm2d(16), nn.ReLU6(),
                nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.BatchNorm2d(16), nn.ReLU6(),
                nn.Conv2d(16, 32, 1), nn.GroupNorm(4, 32), nn.SiLU(), nn.AvgPool2d(2),
                nn.Conv2d(32, 32, 3, 2, padding=1, groups=32), nn.Flatten(), nn.LazyLinear(10),
            ),
        ]  # fmt: skip
        x, y = normal(batch, 3, side, side), classes(10, batch)
        for net in nets:
            net(x)
            yield from training(net, lambda n=net, x=x, y=y: functional.cross_entropy(n(x), y))

            def evaluated(net: nn.Module = net, x: torch.Tensor = x) -> object:
                net.eval()
                with torch.no_grad():
                    return net(x).softmax(-1).numpy()

            yield evaluated


class Weighed(nn.Module):
    """A convolution of each channel, and channels times a number that their means give."""

    def __init__(self, width: int, size: int, stride: int) -> None:
        super().__init__()
        self.each = nn.Sequential(
            nn.Conv2d(width, width, size, stride, padding=size // 2, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.SiLU(),
        )
        self.weights = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(width, 8, 1),
            nn.SiLU(),
            nn.Conv2d(8, width, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.each(x)
        return y * self.weights(y)


class Joined(nn.Module):
    """A level of a network that goes down and up again, with what was there before beside it."""

    def __init__(self, width: int, up: nn.Module) -> None:
        super().__init__()
        self.before, self.below = (
            nn.Conv2d(width, width, 3, padding=1),
            nn.Conv2d(width, 2 * width, 3, 2, padding=1),
        )
        self.up, self.after = up, nn.LazyConv2d(width, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.before(x))
        return self.after(torch.cat([x, self.up(functional.relu(self.below(x)))], 1))


def pictures() -> Iterator[Step]:
    """Networks that make pictures, weigh channels, or see few large windows."""
    made = [
        nn.Sequential(
            nn.ConvTranspose2d(32, 64, 4, 1, 0), nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh(),
        ),
        nn.Sequential(
            nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2), nn.Conv2d(64, 32, 3, padding=1),
        ),
        nn.Sequential(
            nn.GroupNorm(8, 32), nn.SiLU(), nn.Conv2d(32, 32, 3, padding=1),
            Joined(32, nn.ConvTranspose2d(64, 32, 2, 2)), Joined(32, nn.Upsample(scale_factor=2, mode="bilinear")),
        ),
        nn.Sequential(
            nn.Conv2d(32, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
        ),
        nn.Sequential(*[Weighed(32, size, stride) for size, stride in ((3, 1), (5, 1), (5, 2), (3, 2), (7, 1))]),
        nn.Sequential(
            nn.Conv2d(32, 32, 1, groups=4), nn.ChannelShuffle(4),
            nn.PixelShuffle(2), nn.Conv2d(8, 32, 3, padding=1),
        ),
    ]  # fmt: skip
    for batch, side, net in itertools.product((1, 4), (16, 48), made):
        if side == 16 and isinstance(net[-1], nn.Flatten):
            continue  # its windows are larger
        x = normal(batch, 32, side, side)
        net.train()
        net(x)
        yield from training(net, lambda n=net, x=x: n(x).square().mean())

        def evaluated(net: nn.Module = net, x: torch.Tensor = x) -> object:
            net.eval()
            with torch.no_grad():
                return net(x).numpy()

        yield evaluated


def windows() -> Iterator[Step]:
    """Convolutions over time and over volumes, and sums over bags of rows."""
    for batch, length in ((1, 50), (8, 200)):
        x = normal(batch, 16, length)
        layers = [nn.Conv1d(16, 16, 3, padding=2**level, dilation=2**level) for level in range(4)]
        net = nn.Sequential(
            *layers, nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1), nn.AdaptiveMaxPool1d(1)
        )
        yield from training(net, lambda n=net, x=x: n(x).square().mean())
        volume = normal(batch, 1, 8, 8, 8)
        net = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, padding=1)
        )
        yield from training(net, lambda n=net, x=volume: n(x).square().mean())
        bags = nn.EmbeddingBag(500, 32, mode="sum")
        rows = classes(500, batch, 20)
        yield from training(bags, lambda n=bags, x=rows: n(x).square().mean())


class Block(nn.Module):
    """A layer of a transformer with its products written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        parts = self.qkv(self.first(x)).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        weights = torch.softmax(q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(functional.gelu(self.up(self.second(x))))


def texts() -> Iterator[Step]:
    """Transformers over tokens, with blocks written out and of the library."""
    for batch, length, width, heads in ((4, 32, 64, 4), (1, 10, 32, 2), (2, 100, 128, 4)):
        own = nn.Sequential(
            nn.Embedding(500, width), Block(width, heads), nn.LayerNorm(width), nn.Linear(width, 500)
        )
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True)
        library = nn.Sequential(nn.Embedding(500, width), layer, nn.Linear(width, 500))
        tokens, y = classes(500, batch, length), classes(500, batch, length)
        for net in (own, library):
            yield from training(
                net,
                lambda n=net, x=tokens, y=y: functional.cross_entropy(n(x).reshape(-1, 500), y.reshape(-1)),
            )
        q = normal(batch, heads, length, width // heads).requires_grad_(True)
        yield lambda q=q: functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


def sequences() -> Iterator[Step]:
    """Recurrent networks, as modules and as cells in a loop."""
    for batch, length, given, width in ((16, 20, 32, 64), (1, 7, 10, 20)):
        x, y = normal(length, batch, given), classes(10, batch)
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            net = nn.ModuleList([kind(given, width), nn.Linear(width, 10)])
            yield from training(
                net, lambda n=net, x=x, y=y: functional.cross_entropy(n[1](n[0](x)[0][-1]), y)
            )
            deep = kind(given, width, 2, batch_first=True, bidirectional=True)
            yield from training(deep, lambda n=deep, x=x: n(x.transpose(0, 1))[0].square().mean())
            stacked = nn.ModuleList([kind(given, width, 2, batch_first=True), nn.Linear(width, 10)])
            yield from training(
                stacked,
                lambda n=stacked, x=x, y=y: functional.cross_entropy(
                    n[1](n[0](x.transpose(0, 1))[0][:, -1]), y
                ),
            )
        for cell in (nn.LSTMCell(given, width), nn.GRUCell(given, width), nn.RNNCell(given, width)):
            net = nn.ModuleList([cell, nn.Linear(width, 10)])

            def unrolled(
                net: Any = net,
                x: torch.Tensor = x,
                y: torch.Tensor = y,
                size: tuple[int, int] = (batch, width),
            ) -> torch.Tensor:
                state: Any = (torch.zeros(*size), torch.zeros(*size))
                if not isinstance(net[0], nn.LSTMCell):
                    state = state[0]
                for row in x:
                    state = net[0](row, state)
                return functional.cross_entropy(net[1](state[0] if isinstance(state, tuple) else state), y)

            yield from training(net, unrolled)


def arithmetic() -> Iterator[Step]:
    """Functions and operators on small and large arrays, with gradients."""
    unary = ["exp", "log1p", "sqrt", "tanh", "sigmoid", "relu", "abs", "neg", "square", "sin", "cos"]
    for shape in ((3,), (5, 3), (40,), (64, 100), ()):
        x = (normal(*shape).abs() + 0.5).requires_grad_(True)
        y = (normal(*shape) + 3.0).requires_grad_(True)
        for name in unary:
            yield lambda x=x, name=name: getattr(torch, name)(x).sum().backward()
        yield lambda x=x, y=y: (x * y + x / y - y**2 + 2.0 * x).mean().backward()
        yield lambda x=x, y=y: (torch.maximum(x, y).max() - torch.where(x > y, x, y).min()).item()
        if len(shape) == 2:
            yield lambda x=x, y=y: ((x + y[0]) * x[:, :1]).sum(0).std().backward()
            yield (
                lambda x=x, y=y: (
                    (torch.cat([x, y], 1)[:, ::2] @ torch.cat([x, y], 1)[:, ::2].t()).sum().item()
                )
            )
            rows = x.detach()
            yield lambda x=rows: [
                found.numpy() for found in (x.sum(1), x.max(1)[0], x.argmax(1), x.mean(0), x.var(1))
            ]


def values() -> Iterator[Step]:
    """Tensors made from nothing, integers, and what programs look at."""
    for count in (5, 300):
        whole, real = torch.arange(count), torch.linspace(-1, 1, count)
        yield lambda n=count: (torch.arange(n) * 2 + 1).sum().item()
        yield lambda n=count: (torch.arange(n) / 7.0).tolist()
        yield lambda n=count: (torch.arange(n) % 3).tolist()
        yield lambda n=count: [
            made(n).tolist() for made in (torch.rand, torch.randn, torch.ones, torch.zeros)
        ]
        yield lambda n=count: [
            torch.rand(n, 4).tolist(),
            torch.randn(n, 4).tolist(),
            torch.linspace(0, 1, n).tolist(),
        ]
        yield lambda n=count: [
            torch.randperm(n).tolist(),
            torch.full((n,), 0.5).tolist(),
            torch.eye(n).tolist(),
        ]
        yield lambda x=real: [(x > 0).sum().item(), (x == x).all().item(), torch.isnan(x).any().item()]
        yield lambda x=real: [
            found.item() for found in (x.sum(), x.mean(), x.max(), x.min(), x.std(), x.norm())
        ]
        yield lambda i=whole: [
            i.float().tolist(),
            i.double().tolist(),
            (i > 2).float().tolist(),
            i.max().item(),
        ]
        yield lambda x=real, i=whole: [
            x[i].tolist(),
            x[x > 0].tolist(),
            x.cumsum(0).tolist(),
            x.flip(0).tolist(),
        ]
        yield lambda i=whole: functional.one_hot(i % 5, 5).tolist()
        yield lambda x=real: [found.tolist() for found in x.topk(3)] + [x.sort()[0].tolist()]


def copies() -> Iterator[Step]:
    """Elements of the usual dtypes that are moved, joined, compared and cast."""
    dtypes = torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool
    for dtype, shape in itertools.product(dtypes, ((), (2,), (300,), (2, 3), (20, 40))):
        x = (normal(*shape) * 10).abs().to(dtype)
        yield lambda x=x: [
            x.clone().tolist(),
            x.reshape(-1).tolist(),
            (x == x).tolist(),
            torch.zeros_like(x).tolist(),
        ]
        yield lambda x=x: [x.to(other).tolist() for other in (torch.float32, torch.int64, torch.bool)]
        if shape:
            yield lambda x=x: [
                x[1:].tolist(),
                x[-1].tolist(),
                torch.cat([x, x]).tolist(),
                torch.stack([x, x]).tolist(),
            ]
            yield lambda x=x: [
                x.unsqueeze(0).expand(3, *x.shape).tolist(),
                torch.where(x == x, x, x).tolist(),
            ]
        if len(shape) == 2:
            yield lambda x=x: [x.t().contiguous().tolist(), x[:, 1:].contiguous().tolist(), x[:, 0].tolist()]


def programs() -> Iterator[Step]:
    """Steps of all of them, each to be taken a few times."""
    return itertools.chain(
        perceptrons(),
        layers(),
        images(),
        pictures(),
        windows(),
        texts(),
        sequences(),
        arithmetic(),
        values(),
        copies(),
    )
