"""Loop fusion: groups of expressions that one kernel computes.

Expressions are added in a topological order. The level of a group is above those of all groups that it reads, so the
graph of groups stays acyclic whatever is fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold.compiler.lower.loopnest import in_order
from twofold.compiler.lower.values import LANES
from twofold.compiler.schedule.fused_expressions import Analysis, FusedExpression
from twofold.ir.op import ContractionOp
from twofold.ir.sizes import is_symbolic

MOST_INSTRUCTIONS = 5000
"""The limit for one kernel; the code generator takes about 25 microseconds for each, and more in large kernels."""

MOST_BUFFERS = 64
"""The limit for one kernel, before equal ones are merged."""

_NOTHING = -1

Placement = list[list[tuple[int, int]]]
"""For each loop axis of an expression, the axes of the group that it consists of, each with its stride."""


def _divisor(first: Any, second: Any) -> Any:
    """The one of two sizes that divides the other; None if neither is known to."""
    for size, other in ((first, second), (second, first)):
        rest = other % size if size != 0 else None
        if rest is not None and not is_symbolic(rest) and rest == 0:
            return size
    return None


def refine(first: Sequence[int], second: Sequence[int]) -> tuple[list[int], Placement, Placement] | None:
    """The coarsest common refinement of two shapes, with the placements of both; None if there is none.

    >>> refine((6, 4), (2, 12))
    ([2, 3, 4], [[(0, 3), (1, 1)], [(2, 1)]], [[(0, 1)], [(1, 4), (2, 1)]])
    """
    if list(first) == list(second):
        return list(first), [[(k, 1)] for k in range(len(first))], [[(k, 1)] for k in range(len(first))]
    sides = (first, second)
    at = [len(first), len(second)]
    rest, factors = [1, 1], [0, 0]
    common: list[int] = []
    positions: list[Placement] = [[[] for _ in first], [[] for _ in second]]

    def advance(side: int) -> None:
        at[side] -= 1
        rest[side] = sides[side][at[side]] if at[side] >= 0 else 1
        factors[side] = 1

    advance(0)
    advance(1)
    while at[0] >= 0 or at[1] >= 0:
        ones = [side for side in (0, 1) if at[side] >= 0 and rest[side] == 1]
        size, used = 1, ones
        if not ones:
            divisor = None if min(at) < 0 else _divisor(*rest)
            if divisor is None:
                return None
            size, used = divisor, [0, 1]
        for side in used:
            positions[side][at[side]].insert(0, (len(common), factors[side]))
            factors[side] *= size
            rest[side] //= size
            if rest[side] == 1:
                advance(side)
        common.append(size)
    last = len(common) - 1
    first_position, second_position = (
        [[(last - k, f) for k, f in axes] for axes in side] for side in positions
    )
    return common[::-1], first_position, second_position


def map_strides(strides: Sequence[int], placement: Placement, rank: int) -> tuple[int, ...]:
    """Map strides over the axes of an expression to the axes of its group.

    Args:
        strides: The strides, one for each axis of the expression.
        placement: The axes of the group that each of them consists of.
        rank: The number of axes of the group.
    """
    result = [0] * rank
    for stride, axes in zip(strides, placement):
        if stride:
            for axis, factor in axes:
                result[axis] += stride * factor
    return tuple(result)


class Alignment(NamedTuple):
    """How an expression is added to a group.

    Attributes:
        sizes: The new lengths of the axes of the group.
        tags: The new tags, see ``FusionGroup``.
        old: The placement of the old axes of the group.
        new: The placement of the axes of the expression.
        row: Whether the expression does not vary along reduced axes.
    """

    sizes: list[int]
    tags: list[int] | None
    old: Placement
    new: Placement
    row: bool


class FusionGroup:
    """The expressions of one kernel, over common axes.

    Attributes:
        kind: "loop", or the kind of an expression that is no loop.
        level: Above that of all groups that it reads.
        sizes: The lengths of the axes.
        tags: The role of each axis: in loops 0 for kept and 1 for reduced ones (None while nothing is reduced), in a
            matrix product 0 for the batch, 1 for rows and 2 for columns.
        placements: By number of an expression, its axes in terms of those of the group.
        blocked: Whether reductions are those of blocks.
        rows: Numbers of the expressions that do not vary along reduced axes.
    """

    __slots__ = (
        "blocked",
        "buffers",
        "cost",
        "expressions",
        "kind",
        "level",
        "number",
        "placements",
        "rows",
        "sizes",
        "tags",
        "users",
    )

    def __init__(self, kind: str, number: int, level: int) -> None:
        self.kind = kind
        self.number = number
        self.level = level
        self.expressions: list[FusedExpression] = []
        self.users: set[FusionGroup] = set()
        self.sizes: list[int] = []
        self.tags: list[int] | None = None
        self.placements: dict[int, Placement] = {}
        self.blocked = False
        self.rows: set[int] = set()
        self.cost = 0
        self.buffers = 0

    def accept(self, expression: FusedExpression, alignment: Alignment) -> None:
        """Add ``expression``."""
        if alignment.sizes != self.sizes or len(alignment.old) != len(self.sizes):
            self.placements = {
                number: [
                    [(axis, f * factor) for at, f in axes for axis, factor in alignment.old[at]]
                    for axes in index
                ]
                for number, index in self.placements.items()
            }
        self.sizes, self.tags = alignment.sizes, alignment.tags
        self.placements[expression.number] = alignment.new
        if alignment.row:
            self.rows.add(expression.number)
        self.blocked |= expression.is_blocked
        self.expressions.append(expression)
        self.cost += expression.cost
        self.buffers += expression.buffers

    @property
    def limit(self) -> int:
        """The highest level that this group may be raised to: below all of its users."""
        return min((user.level for user in self.users), default=1 << 60) - 1


class Grouping:
    """Partitions the expressions of an analysis into groups; ``join=False`` makes one group of each."""

    def __init__(self, analysis: Analysis, join: bool = True) -> None:
        self.analysis = analysis
        self.join = join
        self.groups: list[FusionGroup] = []
        self.home: dict[int, FusionGroup] = {}  # by id of the root
        self.of_expression: dict[int, FusionGroup] = {}  # by number of the expression
        self.expression_of: dict[int, FusedExpression] = {}
        self._readers: dict[int, list[FusionGroup]] = {}
        for expression in analysis.expressions:
            if expression.output < 0:
                self.expression_of[expression.root.id] = expression
        for expression in analysis.expressions:
            self._position(expression)
        if join:
            self._merge()

    def _position(self, expression: FusedExpression) -> None:
        reads = sorted(self.analysis.reads(expression))
        before = {self.home[node_id].number: self.home[node_id] for node_id in reads if node_id in self.home}
        group = None
        if self.join and expression.is_loop:
            group = self._fuse(expression, reads, before)
        if group is None:
            kind = "loop" if expression.is_loop else expression.kind
            level = 1 + max((other.level for other in before.values()), default=0)
            group = FusionGroup(kind, len(self.groups), level)
            self.groups.append(group)
            group.accept(expression, _alone(expression))
        self._assign(expression, group)
        for other in before.values():
            if other is not group:
                other.users.add(group)
        if group.kind == "loop":
            # expressions without operands, such as materialised constants, are fused with each other
            for node_id in reads or (_NOTHING,):
                self._readers.setdefault(node_id, []).append(group)

    def _assign(self, expression: FusedExpression, group: FusionGroup) -> None:
        self.of_expression[expression.number] = group
        if expression.output < 0:
            self.home[expression.root.id] = group

    def _fuse(
        self, expression: FusedExpression, reads: Sequence[int], before: dict[int, FusionGroup]
    ) -> FusionGroup | None:
        """Fuse ``expression`` with a producer, else with a group that reads the same values.

        Args:
            expression: The expression.
            reads: Ids of the values that it reads.
            before: The groups of its producers, by number.

        Returns:
            The group to which it was added; None if it fits into none.
        """
        tried = set()
        found = sorted(before.values(), key=lambda group: (-group.level, -group.number))
        for node_id in reads or (_NOTHING,):
            found += self._readers.get(node_id, ())[-4:]
        for group in found:
            if group.number in tried:
                continue
            tried.add(group.number)
            required = 1 + max((other.level for other in before.values() if other is not group), default=-1)
            if required > group.limit:
                continue
            alignment = self.fit(group, expression)
            if alignment is not None:
                group.level = max(group.level, required)
                group.accept(expression, alignment)
                return group
        return None

    def fit(self, group: FusionGroup, expression: FusedExpression) -> Alignment | None:
        """How ``expression`` could be added to a group; None if it cannot."""
        if group.kind not in ("loop", "contraction"):
            return None
        buffers = group.buffers + expression.buffers
        if group.cost + expression.cost > MOST_INSTRUCTIONS or buffers > 16 * MOST_BUFFERS:
            return None
        # a kernel without loops runs once, so it may have any number of buffers
        if buffers > MOST_BUFFERS and expression.root.type.size > LANES:
            return None
        alignment = self._over_all_axes(group, expression)
        over_rows = group.kind == "loop" and group.tags is not None and not group.blocked
        if alignment is None and over_rows and expression.kind != "reduction":
            alignment = self._over_rows(group, expression)
        return alignment

    def _over_all_axes(self, group: FusionGroup, expression: FusedExpression) -> Alignment | None:
        found = refine(group.sizes, expression.domain)
        if found is None:
            return None
        sizes, old, new = found
        tags: list[int] | None = None
        if group.tags is not None:
            tags = _tags(group.tags, old, len(sizes))
            if tags is None:
                return None
        if expression.kind == "reduction":
            own = _tags([int(flag) for flag in expression.reduced], new, len(sizes))
            if group.kind == "contraction" or own is None or (tags is not None and own != tags):
                return None
            # the reductions of a kernel are all of blocks or none
            if tags is not None and expression.is_blocked != group.blocked:
                return None
            # the reductions of a kernel all have sixteen lanes or all one
            others = [other for other in group.expressions if other.kind == "reduction"]
            if any(in_order(other.root) != in_order(expression.root) for other in others):
                return None
            tags = own
        alignment = Alignment(sizes, tags, old, new, expression.kind == "reduction")
        return alignment if self._agrees(group, expression, alignment) else None

    def _over_rows(self, group: FusionGroup, expression: FusedExpression) -> Alignment | None:
        assert group.tags is not None
        kept = [axis for axis, tag in enumerate(group.tags) if tag == 0]
        found = refine([group.sizes[axis] for axis in kept], expression.domain)
        if found is None:
            return None
        common, own, other = found
        sizes: list[int] = []
        tags: list[int] = []
        old: Placement = []
        position: dict[int, int] = {}
        pieces = dict(zip(kept, own))
        for axis, size in enumerate(group.sizes):
            if axis not in pieces:
                old.append([(len(sizes), 1)])
                sizes.append(size)
                tags.append(group.tags[axis])
                continue
            old.append([])
            for piece, factor in pieces[axis]:
                position[piece] = len(sizes)
                old[-1].append((len(sizes), factor))
                sizes.append(common[piece])
                tags.append(0)
        if any(piece not in position for axes in other for piece, _ in axes):
            return None
        new = [[(position[piece], factor) for piece, factor in axes] for axes in other]
        alignment = Alignment(sizes, tags, old, new, True)
        return alignment if self._agrees(group, expression, alignment) else None

    def _agrees(self, group: FusionGroup, expression: FusedExpression, alignment: Alignment) -> bool:
        """Whether ``expression`` reads values of the group only in the iteration that computes them."""
        rank = len(alignment.sizes)
        for term in expression.terms:
            if term.kind != "load" or self.home.get(term.node.id) is not group:
                outside = group.kind == "contraction" and term.kind in ("load", "index")
                if outside and not _is_collapsible(map_strides(term.strides, alignment.new, rank), alignment):
                    return False
                continue
            member = self.expression_of[term.node.id]
            if term.offset or term.dynamic or member.is_blocked:
                return False
            placement: Placement = [
                [(axis, f * factor) for at, f in axes for axis, factor in alignment.old[at]]
                for axes in group.placements[member.number]
            ]
            if map_strides(term.strides, alignment.new, rank) != map_strides(member.strides, placement, rank):
                return False
        return group.kind != "contraction" or _is_collapsible(
            map_strides(expression.strides, alignment.new, rank), alignment
        )

    # Fusion of groups

    def _merge(self) -> None:
        """Fuse groups with their only user, later ones first, so that fewer values are materialised."""
        for group in sorted(self.groups, key=lambda found: -found.level):
            users = self._users(group)
            if group.kind == "loop" and len(users) == 1:
                (user,) = users
                if user.kind == "loop":
                    self._absorb(user, group)
        self.groups = [group for group in self.groups if group.expressions]

    def _users(self, group: FusionGroup) -> set[FusionGroup]:
        found = set()
        for expression in group.expressions:
            for user in self.analysis.users.get(expression.root.id, ()) if expression.output < 0 else ():
                found.add(self.of_expression[user.number])
        found.discard(group)
        return found

    def _absorb(self, user: FusionGroup, group: FusionGroup) -> bool:
        """Fuse ``group`` into ``user``; False, without a change, if they do not fit."""
        if user.cost + group.cost > MOST_INSTRUCTIONS or user.buffers + group.buffers > MOST_BUFFERS:
            return False
        fused = FusionGroup("loop", user.number, user.level)
        saved, saved_expressions = dict(self.home), dict(self.of_expression)
        for expression in sorted([*group.expressions, *user.expressions], key=lambda found: found.number):
            alignment = self.fit(fused, expression) if fused.expressions else _alone(expression)
            if alignment is None:
                self.home, self.of_expression = saved, saved_expressions
                return False
            fused.accept(expression, alignment)
            self._assign(expression, fused)
        fused.users = user.users
        for other in self.groups:
            if user in other.users or group in other.users:
                other.users -= {user, group}
                other.users.add(fused)
        self.groups[self.groups.index(user)] = fused
        group.expressions = []
        return True


def _alone(expression: FusedExpression) -> Alignment:
    sizes = list(expression.domain)
    tags: list[int] | None = None
    if expression.kind == "reduction":
        tags = [int(flag) for flag in expression.reduced]
    elif expression.kind == "contraction":
        tags = contraction_tags(expression)
    identity: Placement = [[(axis, 1)] for axis in range(len(sizes))]
    return Alignment(sizes, tags, [], identity, expression.kind == "reduction")


def contraction_tags(expression: FusedExpression) -> list[int]:
    """The tag of each loop axis of a matrix product: batch, rows or columns."""
    shape = expression.root.shape
    op = expression.root.op
    assert isinstance(op, ContractionOp)
    rows, columns = op.matrix_axes
    first = len(shape) - columns
    tags = [0] * (first - rows) + [1] * rows + [2] * columns
    return [tags[axis] for axis, size in enumerate(shape) if size != 1]


def _tags(tags: Sequence[int], placement: Placement, rank: int) -> list[int] | None:
    """The tags of axes after some were split.

    Args:
        tags: The tags of the axes before.
        placement: The new axes that each of them consists of.
        rank: The number of new axes.

    Returns:
        None if an axis would have no tag.
    """
    result = [-1] * rank
    for tag, axes in zip(tags, placement, strict=True):
        for axis, _ in axes:
            result[axis] = tag
    return None if -1 in result else result


def _is_collapsible(strides: Sequence[int], alignment: Alignment) -> bool:
    """Whether the axes of each tag can be collapsed to one."""
    assert alignment.tags is not None
    for axis in range(len(strides) - 1):
        same = alignment.tags[axis] == alignment.tags[axis + 1]
        if same and strides[axis] != strides[axis + 1] * alignment.sizes[axis + 1]:
            return False
    return True
