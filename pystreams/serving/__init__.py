"""What a running application shows to those that watch over it: metrics and health over HTTP, and its state to systemd.

Begin with ``server``, which listens on an ``address``; ``pages`` has what is at each path, ``prometheus`` the text of
the metrics, and ``watched`` what all of it needs to know of the application. ``systemd`` sends notifications. Web
libraries (the extra ``http``) are imported by this package alone, and ``server`` only where somebody asks for it.
"""
