"""Compares the stores of a live application with what its history gives.

The input is computed again up to the offsets that the application has committed, and the result is compared with the
changelogs as they were at that commit. Nothing is written to the log.

- ``verifying``: the steps, for scripts and for the command. Begin here.
- ``live_cut``: the moment of the live application that is compared: its offsets, and the ends of its changelogs.
- ``history``: the same moment as the end of history, and whether the sources hold all of it.
- ``live_entries``: the content of a changelog partition at that moment. ``entry_form``: what distinguishes the entries
  of a kind of store, and what of them is compared.
- ``comparing``: one store partition; ``outcome``: counts and differences. ``legal``: why a right result may differ.
- ``shown_entries``: keys and values as the program's types.
"""
