"""The live page of a running application: its state as JSON and as server-sent events, and the page that shows them.

- ``look``: the visible state, as data. Begin here.
- ``client_look`` and ``group_look``: the state of a client, and the state of all processes as the group has it.
- ``other_instances``: the states of the other instances that can be asked.
- ``first_paint``: the page before its scripts run. ``static/``: its scripts and style sheet.
- ``events``: the streams of events. ``routes``: the routes of all pages.

Nothing is computed while the page is not open. ``look``, ``client_look`` and ``group_look`` are also used by workers,
so they need no library of the extra ``http``.
"""
