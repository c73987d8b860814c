"""Shows a running application to others: metrics, health and stores over HTTP, and its state to systemd.

Begin with ``server``, which listens on an ``address``, with ``tls`` if it has a certificate, waits for ``handshakes``
and holds ``connections``; ``asgi`` is for web servers of users.
While there are requests for stores, threads take ``turns`` more often.
``pages`` joins the pages of all paths: ``health_pages`` (``prometheus`` makes the text of the metrics, ``threads`` the
activities of the threads, ``watched`` is the interface to the application, ``group_status`` and ``lag`` are the state
of all its processes in the log), the package ``stores``, and ``live``, the page for people with a browser.
Each request passes the ``guards`` first, which read its ``head``: ``access`` and ``token`` decide who may read,
``limits`` how large a request may be; ``refusals`` has the form of errors, and ``query_errors`` those of queries.
``headers`` has the one that names the application in each answer.
``systemd`` sends notifications. Only this package imports web libraries (the extra ``http``), and ``server`` is
imported only if it is needed.
"""
