# Two stages: what is needed to install stays out of the image that runs. All packages are pinned with
# their hashes in requirements/run.txt.
FROM python:3.11.14-slim-trixie AS build
WORKDIR /build
COPY requirements/run.txt requirements/
COPY pyproject.toml README.md LICENSE ./
COPY webhook/ webhook/
RUN python -m venv /opt/waddle
RUN /opt/waddle/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/run.txt
RUN python -m venv /opt/tools
COPY requirements/build.txt requirements/
RUN /opt/tools/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/build.txt
RUN /opt/tools/bin/python -m hatchling build -t wheel -d dist
RUN /opt/waddle/bin/python -m pip install --no-cache-dir --disable-pip-version-check --no-deps --no-index dist/*.whl
# Whatever becomes of times on the way (SOURCE_DATE_EPOCH, a mirror), what is compiled stays so.
RUN python -m compileall -q -f --invalidation-mode=unchecked-hash /opt/waddle/lib

FROM python:3.11.14-slim-trixie
# The image has no compiled standard library, and nothing may be written: each start would compile it.
RUN python -m compileall -q --invalidation-mode=unchecked-hash -x site-packages /usr/local/lib/python3.11
COPY --from=build /opt/waddle /opt/waddle
COPY policies/ /policies/
# A number, so that Kubernetes' runAsNonRoot can be checked before the image runs.
USER 65532:65532
# Nothing is written: the root file system may be read-only.
ENV PATH=/opt/waddle/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 8443 9090 8888
ENTRYPOINT ["waddle"]
CMD ["serve", "--policies=/policies"]
