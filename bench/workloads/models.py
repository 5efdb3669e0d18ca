"""Whole models, one text for PyTorch and for Twofold's define-by-run way: ``MODELS`` by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy


def normal(torch: Any, *shape: int) -> Any:
    return torch.from_numpy(numpy.random.default_rng(0).normal(size=shape).astype(numpy.float32))


def integers(torch: Any, high: int, *shape: int) -> Any:
    return torch.from_numpy(numpy.random.default_rng(0).integers(0, high, shape))


def convolved(nn: Any, given: int, made: int, size: int = 3, stride: int = 1, groups: int = 1) -> list[Any]:
    """A convolution with batch norm and ReLU."""
    layer = nn.Conv2d(given, made, size, stride, size // 2, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(made), nn.ReLU()]


def added(nn: Any, body: Any, short: Any = None) -> Any:
    """``body(x)`` plus ``x``, or plus ``short(x)``."""

    class Added(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.short = body, short or nn.Identity()

        def forward(self, x: Any) -> Any:
            return self.body(x) + self.short(x)

    return Added()


def classifier(nn: Any, layers: list[Any], width: int) -> Any:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


def mobilenet(torch: Any) -> Any:
    """MobileNetV2 (Sandler et al., 2018)."""
    nn = torch.nn
    layers, given = convolved(nn, 3, 32, stride=2), 32
    stages = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]
    for expansion, made, depth, stride in stages:
        for number in range(depth):
            step, wide = 1 if number else stride, given * expansion
            block = [*convolved(nn, given, wide, 1), *convolved(nn, wide, wide, 3, step, wide)]
            body = nn.Sequential(*block, nn.Conv2d(wide, made, 1, bias=False), nn.BatchNorm2d(made))
            layers.append(added(nn, body) if step == 1 and given == made else body)
            given = made
    return classifier(nn, [*layers, *convolved(nn, given, 1280, 1)], 1280)


def resnet18(torch: Any) -> Any:
    """ResNet-18 (He et al., 2015)."""
    nn = torch.nn
    layers, given = [*convolved(nn, 3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for made, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        body = nn.Sequential(*convolved(nn, given, made, 3, stride), *convolved(nn, made, made)[:2])
        short = None if given == made else nn.Sequential(*convolved(nn, given, made, 1, stride)[:2])
        layers += [added(nn, body, short), nn.ReLU()]
        given = made
    return classifier(nn, layers, 512)


def densenet(torch: Any) -> Any:
    """Three blocks of six layers that see all layers before them (Huang et al., 2016), 16 channels each."""
    nn = torch.nn

    class Grown(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, given: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.BatchNorm2d(given), nn.ReLU(), nn.Conv2d(given, 16, 3, 1, 1, bias=False)
            )

        def forward(self, x: Any) -> Any:
            return torch.cat([x, self.body(x)], 1)

    layers, width = [nn.Conv2d(3, 32, 3, 2, 1)], 32
    for block in range(3):
        layers += [Grown(width + 16 * number) for number in range(6)]
        width += 96
        if block < 2:
            layers += [nn.Conv2d(width, width // 2, 1), nn.AvgPool2d(2)]
            width //= 2
    return classifier(nn, layers, width)


def efficient(torch: Any) -> Any:
    """Blocks of EfficientNet (Tan & Le, 2019): SiLU, and channels weighed by their means."""
    nn = torch.nn

    class Weighed(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            layers = [
                nn.Conv2d(width, width // 24, 1),
                nn.SiLU(),
                nn.Conv2d(width // 24, width, 1),
                nn.Sigmoid(),
            ]
            self.weights = nn.Sequential(nn.AdaptiveAvgPool2d(1), *layers)

        def forward(self, x: Any) -> Any:
            return x * self.weights(x)

    layers, given = [nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.SiLU()], 32
    for made, size, stride in (
        (24, 3, 2),
        (24, 3, 1),
        (40, 5, 2),
        (40, 5, 1),
        (80, 3, 2),
        (112, 5, 1),
        (192, 5, 2),
    ):
        wide = 6 * given
        block = [nn.Conv2d(given, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.SiLU()]
        block += [
            nn.Conv2d(wide, wide, size, stride, size // 2, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
        ]
        body = nn.Sequential(*block, nn.SiLU(), Weighed(wide), nn.Conv2d(wide, made, 1), nn.BatchNorm2d(made))
        layers.append(added(nn, body) if stride == 1 and given == made else body)
        given = made
    return classifier(nn, layers, given)


def convnext(torch: Any) -> Any:
    """Six blocks of ConvNeXt (Liu et al., 2022), 96 channels: 7x7 of each channel, norms and products over channels."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.each, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.scale = nn.Parameter(torch.full((width,), 0.1))

        def forward(self, x: Any) -> Any:
            y = self.norm(self.each(x).permute(0, 2, 3, 1))
            y = self.scale * self.down(nn.functional.gelu(self.up(y)))
            return x + y.permute(0, 3, 1, 2)

    return classifier(nn, [nn.Conv2d(3, 96, 4, 4), *[Block(96) for _ in range(6)]], 96)


def shuffled(torch: Any) -> Any:
    """Grouped 1x1 convolutions between which channels are shuffled (Zhang et al., 2017)."""
    nn = torch.nn
    layers = convolved(nn, 3, 48, stride=2)
    for _ in range(6):
        block = [
            *convolved(nn, 48, 48, 1, groups=4),
            nn.ChannelShuffle(4),
            *convolved(nn, 48, 48, groups=48)[:2],
        ]
        layers += [added(nn, nn.Sequential(*block, *convolved(nn, 48, 48, 1, groups=4)[:2])), nn.ReLU()]
    return classifier(nn, layers, 48)


def unet(torch: Any) -> Any:
    """U-Net (Ronneberger et al., 2015) of 24 to 192 channels."""
    nn = torch.nn

    class Level(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, given: int, width: int, depth: int) -> None:
            super().__init__()
            self.before = nn.Sequential(*convolved(nn, given, width), *convolved(nn, width, width))
            self.below = Level(width, 2 * width, depth - 1) if depth else None
            if depth:
                self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
                self.after = nn.Sequential(*convolved(nn, 2 * width, width), *convolved(nn, width, width))

        def forward(self, x: Any) -> Any:
            x = self.before(x)
            if self.below is None:
                return x
            return self.after(torch.cat([x, self.up(self.below(nn.functional.max_pool2d(x, 2)))], 1))

    return nn.Sequential(Level(3, 24, 3), nn.Conv2d(24, 2, 1))


def encoder(torch: Any, width: int, heads: int, depth: int, first: bool = False) -> Any:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=first
    )
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


def language(torch: Any, width: int, heads: int, depth: int, causal: bool) -> Any:
    """Embeddings of words and positions, a transformer, and the scores of 1000 words."""
    nn = torch.nn

    class Language(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(1000, width), nn.Embedding(512, width)
            self.norm, self.body = nn.LayerNorm(width), encoder(torch, width, heads, depth)
            self.scores = nn.Linear(width, 1000)

        def forward(self, x: Any) -> Any:
            length = x.shape[1]
            h = self.norm(self.words(x) + self.positions(torch.arange(length)))
            mask = torch.triu(torch.full((length, length), float("-inf")), 1) if causal else None
            return self.scores(self.body(h, mask=mask))

    return Language()


def recurrent(torch: Any, kind: str, **options: Any) -> Any:
    """Two recurrent layers of 200 over embeddings, and the scores of 1000 words."""
    nn = torch.nn

    class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(1000, 200)
            self.body = getattr(nn, kind)(200, 200, 2, batch_first=True, **options)
            self.scores = nn.Linear(200 * (1 + options.get("bidirectional", False)), 1000)

        def forward(self, x: Any) -> Any:
            return self.scores(self.body(self.words(x))[0])

    return Recurrent()


def tagger(torch: Any) -> Any:
    """Convolutions over time that see 31 steps (Bai et al., 2018)."""
    nn = torch.nn
    layers: list[Any] = []
    for level in range(4):
        layers += [nn.Conv1d(32 if level else 3, 32, 3, padding=2**level, dilation=2**level), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv1d(32, 5, 1))


def points(torch: Any) -> Any:
    """PointNet (Qi et al., 2016) without its alignment."""
    nn = torch.nn
    layers: list[Any] = []
    for given, made in ((3, 64), (64, 128), (128, 512)):
        layers += [nn.Conv1d(given, made, 1), nn.BatchNorm1d(made), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def atari(torch: Any) -> Any:
    """The network of Mnih et al. (2015) over four images of 84 by 84."""
    nn = torch.nn
    layers = [
        nn.Conv2d(4, 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6))


def generator(torch: Any) -> Any:
    """The generator of DCGAN (Radford et al., 2015), 64 channels."""
    nn = torch.nn
    layers: list[Any] = []
    for given, made, stride, padding in ((100, 256, 1, 0), (256, 128, 2, 1), (128, 64, 2, 1)):
        layers += [
            nn.ConvTranspose2d(given, made, 4, stride, padding, bias=False),
            nn.BatchNorm2d(made),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


def diffusion(torch: Any) -> Any:
    """Residual blocks with group norm and SiLU, downwards and by interpolation up again."""
    nn = torch.nn

    def block(width: int) -> Any:
        half = [nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1)]
        other = [nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1)]
        return added(nn, nn.Sequential(*half, *other))

    down = [nn.Conv2d(3, 48, 3, padding=1), block(48), nn.Conv2d(48, 96, 3, 2, 1), block(96)]
    return nn.Sequential(
        *down, nn.Upsample(scale_factor=2), nn.Conv2d(96, 48, 3, padding=1), block(48), nn.Conv2d(48, 3, 1)
    )


def volumes(torch: Any) -> Any:
    nn = torch.nn
    layers = [
        nn.Conv3d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(8, 16, 3, padding=1),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 512, 4))


def perceptron(torch: Any, *widths: int) -> Any:
    nn = torch.nn
    layers: list[Any] = []
    for given, made in itertools.pairwise(widths):
        layers += [nn.Linear(given, made), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def mixer(torch: Any) -> Any:
    """Four blocks of MLP-Mixer (Tolstikhin et al., 2021): 49 patches of 128."""
    nn = torch.nn

    class Turned(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, body: Any) -> None:
            super().__init__()
            self.body = body

        def forward(self, x: Any) -> Any:
            return self.body(x.transpose(1, 2)).transpose(1, 2)

    def block() -> list[Any]:
        over = [Turned(nn.Sequential(nn.Linear(49, 64), nn.GELU(), nn.Linear(64, 49)))]
        each = [nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)]
        return [added(nn, nn.Sequential(nn.LayerNorm(128), *part)) for part in (over, each)]

    return nn.Sequential(*[layer for _ in range(4) for layer in block()])


def recommender(torch: Any) -> Any:
    """Bags of 20 of 10,000 rows, products between fields, a perceptron (Naumov et al., 2019)."""
    nn = torch.nn

    class Recommender(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList([nn.EmbeddingBag(10_000, 32, mode="sum") for _ in range(6)])
            self.top = perceptron(torch, 36, 64, 1)

        def forward(self, x: Any) -> Any:
            fields = torch.stack([bag(x[:, k]) for k, bag in enumerate(self.bags)], 1)
            return self.top((fields @ fields.transpose(1, 2)).flatten(1))

    return Recommender()


def graph(torch: Any) -> Any:
    """Two layers of attention between 300 nodes (Velickovic et al., 2017), absent edges masked."""
    nn = torch.nn
    edges = normal(torch, 300, 300) > 1.5

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, given: int, made: int) -> None:
            super().__init__()
            self.weight, self.left, self.right = (
                nn.Linear(given, made),
                nn.Linear(made, 1),
                nn.Linear(made, 1),
            )

        def forward(self, x: Any) -> Any:
            h = self.weight(x)
            scores = nn.functional.leaky_relu(self.left(h) + self.right(h).T, 0.2)
            return nn.functional.elu(torch.softmax(scores.masked_fill(~edges, -1e9), 1) @ h)

    return nn.Sequential(Attention(64, 64), Attention(64, 7))


class Workload(NamedTuple):
    """A model and what it is given; trained by cross entropy over so many classes, or by the mean of squares."""

    make: Callable[[Any], Any]
    given: Callable[[Any], Any]
    trains: bool = False
    classes: int = 0
    optimizer: str = "Adam"

    def step(self, torch: Any) -> Callable[[], float]:
        """What computes a step, of the model's weights of its own."""
        model, x = self.make(torch), self.given(torch)
        return self._training(torch, model, x) if self.trains else self._inference(torch, model.eval(), x)

    def flops(self, torch: Any) -> int:
        """Floating-point operations of the model forward; a step of training does about three times as many."""
        return int(torch.summary(self.make(torch), self.given(torch)).flops)

    def _inference(self, torch: Any, model: Any, x: Any) -> Callable[[], float]:
        def step() -> float:
            with torch.no_grad():
                return float(model(x).sum())

        return step

    def _training(self, torch: Any, model: Any, x: Any) -> Callable[[], float]:
        with torch.no_grad():
            count = model(x).numel() // max(self.classes, 1)
        labels = integers(torch, max(self.classes, 1), count)
        update = getattr(torch.optim, self.optimizer)(model.parameters(), lr=1e-3)

        def step() -> float:
            y = model(x)
            if self.classes:
                loss = torch.nn.functional.cross_entropy(y.reshape(-1, self.classes), labels)
            else:
                loss = (y * y).mean()
            update.zero_grad()
            loss.backward()
            update.step()
            return float(loss.item())

        return step


def training(make: Callable[[Any], Any], given: Callable[[Any], Any], *how: Any) -> Workload:
    return Workload(make, given, True, *how)


def images(*shape: int) -> Callable[[Any], Any]:
    return lambda torch: normal(torch, *shape)


def words(*shape: int) -> Callable[[Any], Any]:
    return lambda torch: integers(torch, 1000, *shape)


def _bags(torch: Any) -> Any:
    return integers(torch, 10_000, 128, 6, 20)


MODELS: dict[str, Workload] = {
    "MobileNetV2, 1 of 224": Workload(mobilenet, images(1, 3, 224, 224)),
    "MobileNetV2, 7 of 96": Workload(mobilenet, images(7, 3, 96, 96)),
    "MobileNetV2, train 4 of 64": training(mobilenet, images(4, 3, 64, 64), 1000, "SGD"),
    "ResNet-18, 1 of 224": Workload(resnet18, images(1, 3, 224, 224)),
    "ResNet-18, train 7 of 64": training(resnet18, images(7, 3, 64, 64), 1000, "SGD"),
    "DenseNet, 1 of 96": Workload(densenet, images(1, 3, 96, 96)),
    "DenseNet, train 8 of 32": training(densenet, images(8, 3, 32, 32), 1000, "SGD"),
    "EfficientNet, 1 of 160": Workload(efficient, images(1, 3, 160, 160)),
    "EfficientNet, train 4 of 64": training(efficient, images(4, 3, 64, 64), 1000),
    "ConvNeXt, 1 of 112": Workload(convnext, images(1, 3, 112, 112)),
    "ConvNeXt, train 4 of 64": training(convnext, images(4, 3, 64, 64), 1000),
    "ShuffleNet, train 8 of 32": training(shuffled, images(8, 3, 32, 32), 1000),
    "U-Net, 1 of 96": Workload(unet, images(1, 3, 96, 96)),
    "U-Net, train 2 of 96": training(unet, images(2, 3, 96, 96)),
    "BERT base, 1 of 128": Workload(lambda torch: language(torch, 768, 12, 12, False), words(1, 128)),
    "BERT base, 1 of 37": Workload(lambda torch: language(torch, 768, 12, 12, False), words(1, 37)),
    "BERT small, train 7 of 61": training(
        lambda torch: language(torch, 256, 4, 4, False), words(7, 61), 1000, "AdamW"
    ),
    "GPT, train 5 of 99": training(
        lambda torch: language(torch, 192, 6, 4, True), words(5, 99), 1000, "AdamW"
    ),
    "ViT tiny, 1 of 197": Workload(lambda torch: encoder(torch, 192, 3, 12, True), images(1, 197, 192)),
    "Mixer, train 16": training(mixer, images(16, 49, 128)),
    "LSTM, 1 of 33": Workload(lambda torch: recurrent(torch, "LSTM"), words(1, 33)),
    "LSTM, train 7 of 33": training(lambda torch: recurrent(torch, "LSTM"), words(7, 33), 1000),
    "LSTM both ways, train 9 of 21": training(
        lambda torch: recurrent(torch, "LSTM", bidirectional=True), words(9, 21), 1000
    ),
    "GRU, train 16 of 41": training(lambda torch: recurrent(torch, "GRU"), words(16, 41), 1000),
    "convolutions over time, train 8 of 200": training(tagger, images(8, 3, 200)),
    "PointNet, train 8 of 500": training(points, images(8, 3, 500), 10),
    "Atari, 1": Workload(atari, images(1, 4, 84, 84)),
    "Atari, train 32": training(atari, images(32, 4, 84, 84)),
    "DCGAN, train 16": training(generator, images(16, 100, 1, 1)),
    "diffusion, train 4 of 32": training(diffusion, images(4, 3, 32, 32)),
    "volumes, train 2 of 16": training(volumes, images(2, 1, 16, 16, 16), 4),
    "perceptron 300-300-10, 1": Workload(lambda torch: perceptron(torch, 300, 300, 10), images(1, 300)),
    "perceptron 513-257-257-3, train 100": training(
        lambda torch: perceptron(torch, 513, 257, 257, 3), images(100, 513), 3
    ),
    "perceptron 1000-3000-1000, train 7": training(
        lambda torch: perceptron(torch, 1000, 3000, 1000), images(7, 1000), 0, "SGD"
    ),
    "autoencoder 784-400-20, train 128": training(
        lambda torch: perceptron(torch, 784, 400, 20, 400, 784), images(128, 784)
    ),
    "recommender, train 128": training(recommender, _bags),
    "attention over a graph, train 300": training(graph, images(300, 64), 7),
}
