FROM python:3.13-slim

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt . \
    && useradd --create-home agent && mkdir /workspace && chown agent /workspace

# Most containers forbid the namespaces of level strict. The container confines commands then, and Landlock inside it.
ENV HANDRAIL_ALLOW_REDUCED=true
USER agent
WORKDIR /workspace
# The protocol is on standard input and output: docker run -i --rm -v "$PWD:/workspace" handrail
ENTRYPOINT ["handrail", "mcp", "--root", "/workspace"]
