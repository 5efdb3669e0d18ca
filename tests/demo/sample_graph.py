"""A classifier's loss as a plain list of nodes."""

from __future__ import annotations

from itertools import pairwise

from twofold.demo.graphs import GraphNode


def classifier(sizes: tuple[int, ...] = (64, 256, 128, 10)) -> list[GraphNode]:
    nodes: list[GraphNode] = []

    def add(name: str, op: str, inputs: list[int], shape: str) -> int:
        nodes.append(GraphNode(name, op, tuple(inputs), shape))
        return len(nodes) - 1

    value = add("images", "placeholder", [], f"float32 [?, {sizes[0]}]")
    for number, (fan_in, fan_out) in enumerate(pairwise(sizes), 1):
        weight = add(f"weight_{number}", "variable", [], f"float32 [{fan_out}, {fan_in}]")
        product = add(f"product_{number}", "matmul", [value, weight], f"float32 [?, {fan_out}]")
        bias = add(f"bias_{number}", "variable", [], f"float32 [{fan_out}]")
        value = add(f"sum_{number}", "add", [product, bias], f"float32 [?, {fan_out}]")
        if number < len(sizes) - 1:
            value = add(f"relu_{number}", "relu", [value], f"float32 [?, {fan_out}]")
    largest = add("largest", "max", [value], "float32 [?, 1]")
    shifted = add("shifted", "subtract", [value, largest], f"float32 [?, {sizes[-1]}]")
    power = add("power", "exp", [shifted], f"float32 [?, {sizes[-1]}]")
    add("loss", "mean <&>", [shifted, power, shifted], "float32 []")
    return nodes
