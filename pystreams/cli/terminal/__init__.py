"""Output of the commands: results on standard output, everything else on standard error.

- ``console``: messages and tables. Begin here. ``logs``: log lines, for people or as JSON.
- ``progress``: the progress of an application while it runs. ``last_line``: the summary at its end.
- ``show_error``: an error in a few lines, with those of the user's own code (``user_lines``). ``exits``: exit codes.
- ``stopping``: the end of a command by a signal.
"""
