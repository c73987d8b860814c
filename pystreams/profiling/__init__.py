"""Shows how a running application spends its time: in each step, and outside of steps.

Begin with ``sampler``, which periodically reads the stacks of the stream threads, in its own thread. ``places`` finds
the work of a stack, ``profile`` adds up the times, and ``flame_graph`` draws them. There is no other cost: compiled
code has the step of each of its lines anyway (``LINE_OWNERS`` in ``engine/linking.py``).
"""

from __future__ import annotations

from pystreams.profiling.flame_graph import flame_graph
from pystreams.profiling.profile import Profile, Row
from pystreams.profiling.sampler import Sampler

__all__ = ["Profile", "Row", "Sampler", "flame_graph"]
