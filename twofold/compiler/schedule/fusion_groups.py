"""Clusters: units that one kernel computes together.

Units join in the order in which they depend on each other. Every cluster has a level above those of all
clusters it reads, so whatever joins whatever, the kernels can be put in an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twofold.compiler.lower.values import LANES
from twofold.compiler.schedule.fused_expressions import Analysis, Unit

MOST_INSTRUCTIONS = 5000
"""Of one kernel; the code generator takes about 25 microseconds for each, and more where there are many."""

MOST_BUFFERS = 64
"""Of one kernel, counted before equal ones are found."""

_NOTHING = -1

Placement = list[list[tuple[int, int]]]
"""For each loop axis of a unit: the axes of the cluster it runs over, each with the factor of its index."""


def refine(first: Sequence[int], second: Sequence[int]) -> tuple[list[int], Placement, Placement] | None:
    """Axis lengths that both divide into, with the placements of both; None if there are none.

    >>> refine((6, 4), (2, 12))
    ([2, 3, 4], [[(0, 3), (1, 1)], [(2, 1)]], [[(0, 1)], [(1, 4), (2, 1)]])
    """
    if list(first) == list(second):
        return list(first), [[(k, 1)] for k in range(len(first))], [[(k, 1)] for k in range(len(first))]
    sides = (first, second)
    at = [len(first), len(second)]
    rest, factors = [1, 1], [0, 0]
    common: list[int] = []
    places: list[Placement] = [[[] for _ in first], [[] for _ in second]]

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
            size, used = min(rest), [0, 1]
            if min(at) < 0 or size == 0 or max(rest) % size:
                return None
        for side in used:
            places[side][at[side]].insert(0, (len(common), factors[side]))
            factors[side] *= size
            rest[side] //= size
            if rest[side] == 1:
                advance(side)
        common.append(size)
    last = len(common) - 1
    first_place, second_place = ([[(last - k, f) for k, f in axes] for axes in side] for side in places)
    return common[::-1], first_place, second_place


def spread(strides: Sequence[int], placement: Placement, rank: int) -> tuple[int, ...]:
    """Strides over a unit's axes, rewritten over the cluster's."""
    result = [0] * rank
    for stride, axes in zip(strides, placement):
        if stride:
            for axis, factor in axes:
                result[axis] += stride * factor
    return tuple(result)


class Joining(NamedTuple):
    """How a unit joins a cluster: the cluster's new axes and where those of old and new members lie."""

    sizes: list[int]
    groups: list[int] | None
    old: Placement
    new: Placement
    row: bool


class Cluster:
    """Units of one kernel over axes ``sizes``.

    ``groups`` tags the axes: for loops 0 for kept and 1 for reduced ones (None while nothing is reduced), for
    a matrix product 0 for its batch, 1 for its rows and 2 for its columns.
    """

    __slots__ = (
        "blocked",
        "buffers",
        "cost",
        "groups",
        "kind",
        "level",
        "number",
        "placements",
        "rows",
        "sizes",
        "units",
        "users",
    )

    def __init__(self, kind: str, number: int, level: int) -> None:
        self.kind = kind
        self.number = number
        self.level = level
        self.units: list[Unit] = []
        self.users: set[Cluster] = set()
        self.sizes: list[int] = []
        self.groups: list[int] | None = None
        self.placements: dict[int, Placement] = {}
        self.blocked = False
        self.rows: set[int] = set()  # numbers of units that do not vary along reduced axes
        self.cost = 0
        self.buffers = 0

    def accept(self, unit: Unit, joining: Joining) -> None:
        """Take ``unit`` in."""
        if joining.sizes != self.sizes or len(joining.old) != len(self.sizes):
            self.placements = {
                number: [
                    [(axis, f * factor) for at, f in axes for axis, factor in joining.old[at]]
                    for axes in place
                ]
                for number, place in self.placements.items()
            }
        self.sizes, self.groups = joining.sizes, joining.groups
        self.placements[unit.number] = joining.new
        if joining.row:
            self.rows.add(unit.number)
        self.blocked |= unit.is_blocked
        self.units.append(unit)
        self.cost += unit.cost
        self.buffers += unit.buffers

    def strides_of(self, unit: Unit) -> tuple[int, ...]:
        """Strides of a member's stored result over the cluster's axes."""
        return spread(unit.strides, self.placements[unit.number], len(self.sizes))

    @property
    def limit(self) -> int:
        """The highest level that this cluster may be raised to."""
        return min((user.level for user in self.users), default=1 << 60) - 1


class Clustering:
    """Distributes the units of an analysis over clusters."""

    def __init__(self, analysis: Analysis, join: bool = True) -> None:
        self.analysis = analysis
        self.join = join
        self.clusters: list[Cluster] = []
        self.home: dict[int, Cluster] = {}  # by id of the root
        self.of_unit: dict[int, Cluster] = {}  # by number of the unit
        self.unit_of: dict[int, Unit] = {}
        self._readers: dict[int, list[Cluster]] = {}
        for unit in analysis.units:
            if unit.output < 0:
                self.unit_of[unit.root.id] = unit
        for unit in analysis.units:
            self._place(unit)
        if join:
            self._merge()

    def _place(self, unit: Unit) -> None:
        reads = sorted(self.analysis.reads(unit))
        before = {self.home[node_id].number: self.home[node_id] for node_id in reads if node_id in self.home}
        cluster = None
        if self.join and unit.is_loop:
            cluster = self._candidate(unit, reads, before)
        if cluster is None:
            kind = "loop" if unit.is_loop else unit.kind
            level = 1 + max((other.level for other in before.values()), default=0)
            cluster = Cluster(kind, len(self.clusters), level)
            self.clusters.append(cluster)
            cluster.accept(unit, _alone(unit))
        self._settle(unit, cluster)
        for other in before.values():
            if other is not cluster:
                other.users.add(cluster)
        if cluster.kind == "loop":
            # what reads nothing, such as a constant that must lie in memory, finds its like
            for node_id in reads or (_NOTHING,):
                self._readers.setdefault(node_id, []).append(cluster)

    def _settle(self, unit: Unit, cluster: Cluster) -> None:
        self.of_unit[unit.number] = cluster
        if unit.output < 0:
            self.home[unit.root.id] = cluster

    def _candidate(self, unit: Unit, reads: Sequence[int], before: dict[int, Cluster]) -> Cluster | None:
        """The cluster that ``unit`` joins: one that it reads from, else one that reads the same values."""
        tried = set()
        found = sorted(before.values(), key=lambda cluster: (-cluster.level, -cluster.number))
        for node_id in reads or (_NOTHING,):
            found += self._readers.get(node_id, ())[-4:]
        for cluster in found:
            if cluster.number in tried:
                continue
            tried.add(cluster.number)
            required = 1 + max((other.level for other in before.values() if other is not cluster), default=-1)
            if required > cluster.limit:
                continue
            joining = self.fit(cluster, unit)
            if joining is not None:
                cluster.level = max(cluster.level, required)
                cluster.accept(unit, joining)
                return cluster
        return None

    def fit(self, cluster: Cluster, unit: Unit) -> Joining | None:
        """How ``unit`` could join, None if it cannot."""
        if cluster.kind not in ("loop", "contraction"):
            return None
        # a kernel of straight code runs once, so it may read what it likes
        most = 16 * MOST_BUFFERS if unit.root.type.size <= LANES else MOST_BUFFERS
        if cluster.cost + unit.cost > MOST_INSTRUCTIONS or cluster.buffers + unit.buffers > most:
            return None
        joining = self._over_all_axes(cluster, unit)
        over_rows = cluster.kind == "loop" and cluster.groups is not None and not cluster.blocked
        if joining is None and over_rows and unit.kind != "reduction":
            joining = self._over_rows(cluster, unit)
        return joining

    def _over_all_axes(self, cluster: Cluster, unit: Unit) -> Joining | None:
        found = refine(cluster.sizes, unit.domain)
        if found is None:
            return None
        sizes, old, new = found
        groups: list[int] | None = None
        if cluster.groups is not None:
            groups = _tags(cluster.groups, old, len(sizes))
            if groups is None:
                return None
        if unit.kind == "reduction":
            own = _tags([int(flag) for flag in unit.reduced], new, len(sizes))
            if cluster.kind == "contraction" or own is None or (groups is not None and own != groups):
                return None
            # either all reductions of a kernel are cut into blocks or none is
            if groups is not None and unit.is_blocked != cluster.blocked:
                return None
            groups = own
        joining = Joining(sizes, groups, old, new, unit.kind == "reduction")
        return joining if self._agrees(cluster, unit, joining) else None

    def _over_rows(self, cluster: Cluster, unit: Unit) -> Joining | None:
        assert cluster.groups is not None
        kept = [axis for axis, group in enumerate(cluster.groups) if group == 0]
        found = refine([cluster.sizes[axis] for axis in kept], unit.domain)
        if found is None:
            return None
        common, own, other = found
        sizes: list[int] = []
        groups: list[int] = []
        old: Placement = []
        position: dict[int, int] = {}
        pieces = dict(zip(kept, own))
        for axis, size in enumerate(cluster.sizes):
            if axis not in pieces:
                old.append([(len(sizes), 1)])
                sizes.append(size)
                groups.append(cluster.groups[axis])
                continue
            old.append([])
            for piece, factor in pieces[axis]:
                position[piece] = len(sizes)
                old[-1].append((len(sizes), factor))
                sizes.append(common[piece])
                groups.append(0)
        if any(piece not in position for axes in other for piece, _ in axes):
            return None
        new = [[(position[piece], factor) for piece, factor in axes] for axes in other]
        joining = Joining(sizes, groups, old, new, True)
        return joining if self._agrees(cluster, unit, joining) else None

    def _agrees(self, cluster: Cluster, unit: Unit, joining: Joining) -> bool:
        """Whether ``unit`` reads members of the cluster only at the place in the loops where they are computed."""
        rank = len(joining.sizes)
        for term in unit.terms:
            if term.kind != "load" or self.home.get(term.node.id) is not cluster:
                outside = cluster.kind == "contraction" and term.kind in ("load", "index")
                if outside and not _joinable(spread(term.strides, joining.new, rank), joining):
                    return False
                continue
            member = self.unit_of[term.node.id]
            if term.offset or term.dynamic or member.is_blocked:
                return False
            placement: Placement = [
                [(axis, f * factor) for at, f in axes for axis, factor in joining.old[at]]
                for axes in cluster.placements[member.number]
            ]
            if spread(term.strides, joining.new, rank) != spread(member.strides, placement, rank):
                return False
        return cluster.kind != "contraction" or _joinable(spread(unit.strides, joining.new, rank), joining)

    # Merging afterwards

    def _merge(self) -> None:
        """Move whole clusters into their only user, later ones first, where that keeps values out of memory."""
        for cluster in sorted(self.clusters, key=lambda found: -found.level):
            users = self._users(cluster)
            if cluster.kind == "loop" and len(users) == 1:
                (user,) = users
                if user.kind == "loop":
                    self._absorb(user, cluster)
        self.clusters = [cluster for cluster in self.clusters if cluster.units]

    def _users(self, cluster: Cluster) -> set[Cluster]:
        found = set()
        for unit in cluster.units:
            for user in self.analysis.users.get(unit.root.id, ()) if unit.output < 0 else ():
                found.add(self.of_unit[user.number])
        found.discard(cluster)
        return found

    def _absorb(self, user: Cluster, cluster: Cluster) -> bool:
        """Rebuild ``user`` with the units of ``cluster`` in front; False (and no change) if they do not fit."""
        if user.cost + cluster.cost > MOST_INSTRUCTIONS or user.buffers + cluster.buffers > MOST_BUFFERS:
            return False
        together = Cluster("loop", user.number, user.level)
        saved, saved_units = dict(self.home), dict(self.of_unit)
        for unit in sorted([*cluster.units, *user.units], key=lambda found: found.number):
            joining = self.fit(together, unit) if together.units else _alone(unit)
            if joining is None:
                self.home, self.of_unit = saved, saved_units
                return False
            together.accept(unit, joining)
            self._settle(unit, together)
        together.users = user.users
        for other in self.clusters:
            if user in other.users or cluster in other.users:
                other.users -= {user, cluster}
                other.users.add(together)
        self.clusters[self.clusters.index(user)] = together
        cluster.units = []
        return True


def _alone(unit: Unit) -> Joining:
    sizes = list(unit.domain)
    groups: list[int] | None = None
    if unit.kind == "reduction":
        groups = [int(flag) for flag in unit.reduced]
    elif unit.kind == "contraction":
        groups = contraction_groups(unit)
    identity: Placement = [[(axis, 1)] for axis in range(len(sizes))]
    return Joining(sizes, groups, [], identity, unit.kind == "reduction")


def contraction_groups(unit: Unit) -> list[int]:
    """Whether each loop axis of a matrix product belongs to its batch, rows or columns."""
    shape = unit.root.shape
    rows, columns = unit.root.op.matrix_axes
    first = len(shape) - columns
    tags = [0] * (first - rows) + [1] * rows + [2] * columns
    return [tags[axis] for axis, size in enumerate(shape) if size != 1]


def _tags(groups: Sequence[int], placement: Placement, rank: int) -> list[int] | None:
    """The tags of axes after some were split; None if an axis would have none."""
    result = [-1] * rank
    for group, axes in zip(groups, placement, strict=True):
        for axis, _ in axes:
            result[axis] = group
    return None if -1 in result else result


def _joinable(strides: Sequence[int], joining: Joining) -> bool:
    """Whether the axes of each group can be counted through as one."""
    assert joining.groups is not None
    for axis in range(len(strides) - 1):
        together = joining.groups[axis] == joining.groups[axis + 1]
        if together and strides[axis] != strides[axis + 1] * joining.sizes[axis + 1]:
            return False
    return True
