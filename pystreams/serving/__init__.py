"""Shows a running application to others: metrics, health and stores over HTTP, and its state to systemd.

Begin with ``server``, which listens on an ``address``, with ``tls`` if it has a certificate, waits for ``handshakes``
and holds ``connections``; ``asgi`` is for web servers of users.
While stores are asked for, threads take ``turns`` more often.
``pages`` joins what is at each path: ``health_pages`` (``prometheus`` has the text of the metrics, ``threads`` what
each is at, ``watched`` what they need to know of the application, ``group_status`` and ``lag`` what the log knows of
all its processes), the package ``stores``, and ``live``, the page for people with a browser.
Each request passes the ``guards`` first, which look at its ``head``: ``access`` and ``token`` say who may read,
``limits`` how large a request may be; ``refusals`` has the form of errors, and ``query_errors`` those of queries.
``systemd`` sends notifications. Web libraries (the extra ``http``) are imported by this package alone, and ``server``
only where somebody asks for it.
"""
