"""Counts and times of the compiler."""


class Totals:
    """Counts and times of planning and compiling for this process, in the worker too."""

    plans = 0
    fused = 0
    bodies = 0
    calls = 0
    plan_seconds = 0.0
    kernel_seconds = 0.0

    def planned(self) -> tuple[int, float, float]:
        """How many plans were made, and the seconds that these and their kernels took."""
        return self.plans, self.plan_seconds, self.kernel_seconds

    def add(self, plans: int, plan_seconds: float, kernel_seconds: float) -> None:
        """Count plans that were made."""
        self.plans += plans
        self.plan_seconds += plan_seconds
        self.kernel_seconds += kernel_seconds


TOTALS = Totals()
