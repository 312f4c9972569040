# citerec as a service and as a page: `docker compose up` starts both with Qdrant.
FROM python:3.11-slim

# LightGBM, which ranks, needs libgomp.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY setup.py settings.ini constraints.txt README.md LICENSE ./
COPY citerec citerec
COPY data data
ARG EXTRAS=server,reranker,app,qdrant
RUN pip install --no-cache-dir -c constraints.txt ".[$EXTRAS]"

# The library of PDFs, the user's other data and the built sample corpus lie in a volume that the user of the service may write to.
RUN useradd --create-home citerec && install -d -o citerec /data
USER citerec
WORKDIR /data
ENV CITEREC_LIBRARY=/data/library.db XDG_CACHE_HOME=/data/cache XDG_DATA_HOME=/data/own
VOLUME /data
EXPOSE 8000 8866

HEALTHCHECK --start-period=120s CMD ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 8000), 2)"]
ENTRYPOINT ["citerec"]
CMD ["serve", "--host", "0.0.0.0", "--token"]
