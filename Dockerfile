# A broker: docker build -t moldau . && docker run -p 9092:9092 -v moldau:/var/lib/moldau moldau
FROM python:3.11-slim

RUN useradd --system --uid 10001 --home-dir /var/lib/moldau --create-home moldau
COPY pyproject.toml README.md /build/
COPY src /build/src
RUN pip install --no-cache-dir /build && rm -rf /build

USER moldau
WORKDIR /var/lib/moldau
VOLUME /var/lib/moldau
EXPOSE 9092

ENV MOLDAU_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    MOLDAU_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092 \
    MOLDAU_LOG_DIRS=/var/lib/moldau/data

# SIGTERM hands leaderships over before the broker ends; compose.yaml gives it the time.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s --retries=3 \
    CMD ["moldau", "topics", "list", "--bootstrap-server", "localhost:9092"]
ENTRYPOINT ["moldau", "start"]
