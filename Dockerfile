# Two images: `silkline` (the default) and `renderer`, a browser for pages that need their scripts.
#
#   docker build --tag silkline .
#   docker build --tag silkline-renderer --target renderer .
#   docker run --rm --entrypoint python3 silkline /opt/silkline/sbom.py > sbom.json     # the SBOM, in CycloneDX
#
# `make image-test` executes these steps without Docker, in a root file system made from Debian packages.

# The parts that both images share. Debian's own Python is the version that our tests run on.
FROM debian:bookworm-slim AS base
# Not pinned: a pinned version disappears from the mirrors with the next security update.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* \
    && groupadd --gid 10001 silkline \
    && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin silkline \
    && install --directory --owner=silkline --group=silkline --mode=0700 /data
ENV LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1


FROM base AS build
# Another package index, where the default cannot be reached: --build-arg PIP_INDEX_URL=...
ARG PIP_INDEX_URL
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev python3-dev python3-venv \
    && python3 -m venv /opt/silkline
WORKDIR /build
COPY requirements/base.txt requirements/base.txt
RUN /opt/silkline/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/base.txt
COPY hatch_build.py pyproject.toml README.md LICENSE ./
COPY src src
# The tools of the build are removed; byte code is compiled here, because the image cannot write it later.
RUN /opt/silkline/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/silkline/bin/python -m pip uninstall --yes cython editables hatchling pathspec pluggy trove-classifiers setuptools pip \
    && /opt/silkline/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/silkline/lib


FROM base AS renderer
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium-headless-shell fonts-liberation \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/*
COPY deploy/healthcheck.py deploy/renderer.py deploy/sbom.py /opt/silkline/
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Silkline renderer" \
      org.opencontainers.image.description="A browser that runs the scripts of pages for Silkline." \
      org.opencontainers.image.source="https://github.com/silkline/silkline" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
ENV HOME=/tmp \
    SILKLINE_HEALTH_URL=http://127.0.0.1:9222/json/version
USER 10001:10001
WORKDIR /tmp
EXPOSE 9222
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 CMD ["python3", "-I", "/opt/silkline/healthcheck.py"]
ENTRYPOINT ["/usr/bin/tini", "--", "python3", "-I", "/opt/silkline/renderer.py"]


FROM base AS silkline
COPY --from=build /opt/silkline /opt/silkline
COPY deploy/healthcheck.py deploy/sbom.py /opt/silkline/
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="Silkline" \
      org.opencontainers.image.description="Web crawls that never lose their thread." \
      org.opencontainers.image.source="https://github.com/silkline/silkline" \
      org.opencontainers.image.documentation="https://github.com/silkline/silkline/blob/main/docs/how-to/containers.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
ENV PATH=/opt/silkline/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    SILKLINE_DATA=/data \
    SILKLINE_HEALTH_URL=http://127.0.0.1:8700/healthz
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8700 9700
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 CMD ["python3", "-I", "/opt/silkline/healthcheck.py"]
ENTRYPOINT ["/usr/bin/tini", "--", "silkline"]
# It listens on every address of the container, so it needs SILKLINE_API_TOKEN or SILKLINE_API_TOKEN_FILE.
CMD ["serve", "--host", "0.0.0.0", "--port", "8700"]
