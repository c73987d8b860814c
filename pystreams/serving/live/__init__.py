"""The live page of a running application: its state as JSON and as server-sent events, and the page that shows them.

- ``look``: what there is to see, as data. Begin here.
- ``client_look`` and ``group_look``: how a client sees itself, and what the group knows of the other processes.
- ``other_instances``: what those say of themselves that can be asked.
- ``first_paint``: the page as it is before its scripts run. ``static/``: its scripts and style sheet.
- ``events``: the streams of events. ``routes``: the addresses of all this.

Nothing here is at work while nobody looks. ``look``, ``client_look`` and ``group_look`` are also for workers, so they
need no library of the extra ``http``.
"""
