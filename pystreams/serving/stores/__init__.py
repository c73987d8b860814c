"""Queries of stores over HTTP.

Begin with ``pages``, which has the pages of all paths; ``key_page`` is the most frequent one. A request becomes a
question (``questions``), an ``Answerer`` (``asking``) returns its part of the answer, ``parts`` combines one or more
parts, and ``replies`` makes the reply to the client. ``local`` answers for the client of this process: ``page_reading``
reads a page from an opened store, ``json_forms`` (``key_texts`` says how to write a key) and ``arrow`` convert keys and
values, and ``kept_answers`` caches answers until the next commit. ``lines`` connects a supervisor with its workers,
``ended_answers`` says which of their answers hold, and ``peers`` asks other instances. ``serving.query_errors`` has the
errors of queries.
"""
