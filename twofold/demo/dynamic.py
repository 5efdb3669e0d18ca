"""Define-by-run: the network as a PyTorch program is written, with only the import changed."""

from __future__ import annotations

import numpy

import twofold as torch
from twofold.demo.task import Result, Stopwatch, Task, accuracy


def train(task: Task) -> Result:
    """Trains the network of ``task`` and returns losses, times, accuracy and the final weights."""
    watch = Stopwatch("define-by-run  ", task.steps)
    pixels, first, second, classes = task.sizes
    model = torch.nn.Sequential(
        torch.nn.Linear(pixels, first),
        torch.nn.ReLU(),
        torch.nn.Linear(first, second),
        torch.nn.ReLU(),
        torch.nn.Linear(second, classes),
    )
    with torch.no_grad():
        for parameter, array in zip(model.parameters(), task.initial_weights()):
            parameter.copy_(torch.from_numpy(array))
    loss_function = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=task.learning_rate)

    for images, labels in task.batches():
        optimizer.zero_grad()
        loss = loss_function(model(torch.from_numpy(images)), torch.from_numpy(labels))
        loss.backward()
        optimizer.step()
        watch.step(loss.item())
    watch.stop()

    images, labels = task.test
    with torch.no_grad():
        logits = model(torch.from_numpy(images)).numpy()
    return Result(
        title="define-by-run",
        losses=watch.losses,
        step_seconds=watch.step_seconds,
        first_step_seconds=watch.first_step_seconds,
        accuracy=accuracy(logits, labels),
        weights=[numpy.array(parameter.detach().numpy()) for parameter in model.parameters()],
    )
