"""Graphs and their operations."""

from twofold.static.python.framework import ops as ops
