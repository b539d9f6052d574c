# Untested: no image was built from this file.
FROM python:3.12-slim
WORKDIR /src
COPY . .
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir -c constraints.txt ".[serve,postgres]" \
    && useradd --create-home clickbridge
USER clickbridge
WORKDIR /data
EXPOSE 8765
ENTRYPOINT ["clickbridge"]
CMD ["serve", "/data/model", "--host", "0.0.0.0", "--key-file", "/data/keys"]
