# docker build --file docker/spark.Dockerfile --tag pystreams-spark .
# docker run --rm --network pystreams_default --env PYSTREAMS_BOOTSTRAP_SERVERS=broker:19092 \
#     --volume "$PWD/apps:/srv/apps:ro" --volume pystreams:/srv/.pystreams pystreams-spark backfill apps.wordcount
#
# The image of backfills: with Java and Spark for `--master local[N]` and for clusters, and Arrow for `--master processes[N]`.

FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE requirements-dev.txt ./
COPY pystreams pystreams
RUN pip wheel --no-cache-dir --constraint requirements-dev.txt --wheel-dir /wheels '.[backfill]'

FROM python:3.13-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'pystreams-engine[backfill]' \
    && useradd --create-home --uid 10001 pystreams \
    && install --directory --owner pystreams --mode 0750 /srv/.pystreams \
    && install --directory /srv/apps

WORKDIR /srv
USER 10001
VOLUME /srv/.pystreams
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

ENTRYPOINT ["pystreams"]
CMD ["backfill", "--help"]
