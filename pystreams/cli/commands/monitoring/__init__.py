"""``pystreams monitoring``: prints the dashboard for Grafana and the alert rules for Prometheus.

Begin with ``command``, the only module. The folder ``files`` (not a package) holds both files; ``docker/compose.yaml``
uses them there, too.
"""
