"""The commands.

Begin with ``reset``, which works on an application and its log. A module has the name of a command and a function of
that name, whose arguments are its options; ``topics``, ``dlq`` and ``monitoring`` are applications of typer, with a
function for each of their commands; ``status`` is a package with three commands, ``stores`` one with two.

``init`` begins a project; ``topics``, ``produce``, ``consume`` and ``dlq`` work on a log; ``run``, ``doctor``,
``status`` (with ``lag`` and ``threads``), ``describe``, ``diff`` and ``reset`` on an application; ``backfill``,
``verify`` and ``archive`` on its history; ``snapshots`` on copies of its state; ``monitoring`` prints files for Grafana
and Prometheus. ``stores`` has ``get`` and ``scan``, which look into the stores of a running application.

``late_records`` is what ``describe --late`` shows. ``backfill``, ``verify``, ``doctor``, ``status``, ``dlq`` and
``monitoring`` are packages, with the functions in their module ``command``. ``workers`` are the processes of ``run
--workers``, and ``reloading`` is ``run --reload``, which tries a changed program by ``reload_trial``. The folder
``project`` (not a package) holds the files that ``init`` writes.

Commands do not import each other, with four exceptions: ``diff`` compares shapes of topologies as ``describe`` writes
them, ``run`` starts workers, ``run --reload`` shows what ``diff`` and ``describe`` do, and ``verify`` computes history
as ``backfill`` does.
"""
