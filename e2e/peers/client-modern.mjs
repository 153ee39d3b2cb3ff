// The official TypeScript client 2.x, pinned to 2026-07-28.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { calls, converse, target } from './converse.mjs';

const client = new Client(
    { name: 'client-modern', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
);
await client.connect(target(url => new StreamableHTTPClientTransport(url), options => new StdioClientTransport(options)));
// Listing without a cursor walks all pages itself and keeps the schemas that the Mcp-Param headers are made from.
await converse((name, args, options) => client.callTool({ name, arguments: args }, options), calls(), () => client.listTools());
await client.close();
