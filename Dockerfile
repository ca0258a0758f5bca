# The server by default; `docker run IMAGE index FOLDER` and every other command too.
# docs/how-to/docker.md says how to run it, and what a test runs of this file.
FROM debian:bookworm-slim AS build
# Debian takes a version away when it mends it, so none can be pinned.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/graphrag
# What else is installed: compose.yaml serves and runs `ui`, compose.cluster.yaml has workers.
ARG EXTRAS=evaluation,server,ui,marts
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY assets assets
COPY resources resources
COPY sensors sensors
COPY dbt_reports dbt_reports
COPY graphrag_pipeline graphrag_pipeline
COPY packages packages
RUN /opt/graphrag/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[${EXTRAS}]"
# What no command uses: symbols for debuggers, tests and sources of libraries, maps of Dagster's pages,
# Arrow Flight, a compiled parser of SQL beside the same in Python, languages other than English of the
# library by which dbt reads numbers, and what installs. docs/how-to/docker.md says what is left.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends binutils \
 && rm -rf /var/lib/apt/lists/* \
 && /opt/graphrag/bin/pip uninstall --yes --quiet sqlglotc sqlglotrs setuptools pip \
 && cd /opt/graphrag/lib/python3*/site-packages \
 && find . -type f \( -name '*.so' -o -name '*.so.[0-9]*' \) ! -path '*.libs/*' \
    -exec strip --strip-unneeded '{}' + \
 && find networkx numpy pyarrow scipy sklearn -type d -name tests -prune -exec rm -r '{}' + \
 && find . -type f -regex '.*\.\(map\|hpp\|h\|c\|cc\|cpp\|pxd\|pxi\|pyx\|pyi\)' -delete \
 && find pyarrow -name '*_flight*.so*' -delete \
 && find . -path './babel/locale-data/*.dat' ! -name 'e*' ! -name root.dat -delete

FROM debian:bookworm-slim
# Debian takes a version away when it mends it, so none can be pinned.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && useradd --uid 10001 --home-dir /data --shell /usr/sbin/nologin graphrag \
 && install -d -m 0700 -o graphrag -g graphrag /data \
 && install -d /documents
COPY --from=build /opt/graphrag /opt/graphrag
ENV PATH=/opt/graphrag/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GRAPHRAG_HOME=/data/index \
    GRAPHRAG_INPUT__FOLDER=/documents
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["graphrag-pipeline"]
CMD ["serve", "--host", "0.0.0.0"]
