# towpath with a Java, as a user of its own.
#
#     docker build --tag towpath .
#     docker run --rm --volume "$PWD:/job" towpath run /job/job.yaml
FROM python:3.13-slim-trixie AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel /source

FROM python:3.13-slim-trixie
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-21-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 towpath \
    && mkdir /job && chown towpath:towpath /job
# The versions that towpath is tested with.
COPY requirements-dev.lock /tmp/versions
COPY --from=build /wheel /tmp/wheel
RUN pip install --no-cache-dir --constraint /tmp/versions "$(ls /tmp/wheel/*.whl)[kafka]" && rm -rf /tmp/wheel /tmp/versions
USER towpath
WORKDIR /job
VOLUME /job
RUN towpath prepare
ENTRYPOINT ["tini", "--", "towpath"]
CMD ["--help"]
