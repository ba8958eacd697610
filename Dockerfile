# An image for graders and for the workers of a Dask cluster: docs/operations/containers.md.
# It holds the kit and no solutions; the course is mounted. Build the wheel first: make dist
FROM python:3.13-slim

# torch alone: the largest layer stays while the kit changes. Without torch's index for CPU in this
# argument, torch brings CUDA.
ARG PIP_EXTRA_INDEX_URL
COPY constraints.txt /build/
RUN pip install --no-cache-dir -c /build/constraints.txt torch

COPY dist/*.whl /build/
RUN set -- /build/*.whl \
    && { [ $# = 1 ] || { echo "dist/ has $# wheels: make dist again" >&2; exit 1; }; } \
    && pip install --no-cache-dir -c /build/constraints.txt "$1[cluster,instructor]"

# The packages belong to root, and the grader cannot change them.
RUN useradd --create-home --uid 1000 grader && install --directory --owner=grader /grading
USER grader
WORKDIR /grading
ENV GRADER_COURSE=/course/exercises
ENTRYPOINT ["grader"]
CMD ["--help"]
