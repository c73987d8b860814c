"""Where a running application's time goes: for each step, and for what is not a step.

Begin with ``sampler``, which looks at the stacks of the stream threads now and then, from a thread of its own.
``places`` says what a stack is at work on, ``profile`` adds up, and ``flame_graph`` draws. Nothing else pays for it:
compiled code knows the step of each of its lines anyway (``LINE_OWNERS`` in ``engine/linking.py``).
"""

from __future__ import annotations

from pystreams.profiling.flame_graph import flame_graph
from pystreams.profiling.profile import Profile, Row
from pystreams.profiling.sampler import Sampler

__all__ = ["Profile", "Row", "Sampler", "flame_graph"]
