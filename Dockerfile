# Two stages: what is needed to install stays out of the image that runs. All packages are pinned with
# their hashes in requirements/run.txt, the base by its digest: of the index for all architectures.
ARG BASE=python:3.11.14-slim-trixie@sha256:c8271b1f627d0068857dce5b53e14a9558603b527e46f1f901722f935b786a39
FROM ${BASE} AS build
WORKDIR /build
COPY requirements/run.txt requirements/
COPY pyproject.toml README.md LICENSE ./
COPY webhook/ webhook/
# Of these the wheel has the library of policies, and what `waddle demo` needs.
COPY policies/ policies/
COPY manifests/ manifests/
COPY tests/testcluster/ tests/testcluster/
RUN python -m venv /opt/tools
COPY requirements/build.txt requirements/
RUN /opt/tools/bin/python -m pip install --no-cache-dir --no-compile --disable-pip-version-check --require-hashes -r requirements/build.txt
# What runs has no installer: less to scan, and nothing that could fetch code.
RUN python -m venv --without-pip /opt/waddle
RUN /opt/tools/bin/uv pip sync --no-cache --require-hashes --python /opt/waddle/bin/python requirements/run.txt
RUN /opt/tools/bin/python -m hatchling build -t wheel -d dist
RUN /opt/tools/bin/uv pip install --no-cache --no-deps --no-index --python /opt/waddle/bin/python dist/*.whl
# Whatever becomes of times on the way (SOURCE_DATE_EPOCH, a mirror), what is compiled stays so.
RUN python -m compileall -q -f -j 0 --invalidation-mode=unchecked-hash /opt/waddle/lib
# What a report of a fault begins with (`waddle version`).
ARG COMMIT=
RUN printf %s "$COMMIT" > "$(echo /opt/waddle/lib/python3*/site-packages/webhook)/commit"
# What the environment that runs is made of, as CycloneDX.
RUN python -m venv --without-pip /opt/bill
COPY requirements/sbom.txt requirements/
RUN /opt/tools/bin/uv pip sync --no-cache --require-hashes --python /opt/bill/bin/python requirements/sbom.txt
RUN /opt/bill/bin/cyclonedx-py environment --output-reproducible --output-file /opt/waddle/sbom.cdx.json /opt/waddle/bin/python

FROM ${BASE}
# The image has no compiled standard library, and nothing may be written: each start would compile it.
RUN python -m compileall -q -j 0 --invalidation-mode=unchecked-hash -x 'site-packages|/tests/' /usr/local/lib/python3.11
COPY --from=build /opt/waddle /opt/waddle
COPY policies/ /policies/
# A number, so that Kubernetes' runAsNonRoot can be checked before the image runs.
USER 65532:65532
# Nothing is written: the root file system may be read-only.
ENV PATH=/opt/waddle/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 8443 9090 8888
ENTRYPOINT ["waddle"]
CMD ["serve", "--policies=/policies"]
