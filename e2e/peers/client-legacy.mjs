// The official TypeScript client 1.x, which shakes hands. A ws url is for WebSocket, one that ends in /sse for HTTP+SSE.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import { WebSocket } from 'ws';
import { calls, converse, target } from './converse.mjs';

// The SDK takes the browser's, which Node has from version 22 on.
globalThis.WebSocket ??= WebSocket;

function remote(url) {
    if (url.protocol === 'ws:') return new WebSocketClientTransport(url);
    return url.pathname.endsWith('/sse') ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
}

const client = new Client({ name: 'client-legacy', version: '1.0.0' }, { capabilities: {} });
const transport = target(remote, options => new StdioClientTransport(options));
await client.connect(transport);
await converse(
    (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    calls(),
    cursor => client.listTools(cursor === undefined ? {} : { cursor }),
);
await transport.terminateSession?.();
await client.close();
