"""Queries of stores over HTTP.

Begin with ``pages``: what is at each path. ``key_page`` is the one that is asked for most. A request becomes a question
(``questions``), an ``Answerer`` (``asking``) gives the part of the answer that it has, ``parts`` makes the answer of
one or more parts, and ``replies`` what the client gets. ``local`` is the client of this process: ``page_reading`` takes
a page from an opened store, ``json_forms`` and ``arrow`` show keys and values, and ``kept_answers`` has the last ones
until the next commit. ``lines`` connects a supervisor with its workers, and ``peers`` asks other instances.
``serving.query_errors`` has the reasons for which a query fails.
"""
