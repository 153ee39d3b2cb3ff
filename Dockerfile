# The gateway as an image: docker build -t mcp-gateway .
# With Node beside it, for servers that npm has: docker build --target node -t mcp-gateway:node .

ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

FROM ${GO_IMAGE} AS build
# The gateway ends and reaps its own children. What they leave behind is for an init.
RUN command -v tini-static \
 || { apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*; }
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o /image/usr/local/bin/mcp-gateway ./cmd/mcp-gateway
# Any user may keep state and temporary files.
RUN install -D "$(command -v tini-static)" /image/usr/local/bin/tini \
 && install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
 && printf 'root:x:0:0::/:/sbin/nologin\ngateway:x:65532:65532::/tmp:/sbin/nologin\n' > /image/etc/passwd \
 && install -d /image/etc/mcp-gateway \
 && install -d -m 1777 /image/tmp /image/var/lib/mcp-gateway

FROM ${NODE_IMAGE} AS node
# Servers that are in the image start at once and ask no registry.
ARG SERVERS=""
RUN if [ -n "$SERVERS" ]; then npm install --global --no-audit --no-fund $SERVERS && rm -rf /root/.npm; fi
COPY --from=build /image/usr /usr
COPY --from=build /image/etc/ssl /etc/ssl
COPY --from=build /image/var /var
ENV HOME=/tmp STATE_DIRECTORY=/var/lib/mcp-gateway
USER 65532:65532
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=5s CMD ["/usr/local/bin/mcp-gateway", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/tini", "--", "/usr/local/bin/mcp-gateway"]
CMD ["serve", "-c", "/etc/mcp-gateway/gateway.yaml"]

FROM scratch
COPY --from=build /image /
ENV PATH=/usr/local/bin HOME=/tmp STATE_DIRECTORY=/var/lib/mcp-gateway
USER 65532:65532
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=5s CMD ["/usr/local/bin/mcp-gateway", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/tini", "--", "/usr/local/bin/mcp-gateway"]
CMD ["serve", "-c", "/etc/mcp-gateway/gateway.yaml"]
