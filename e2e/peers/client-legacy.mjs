// The official TypeScript client 1.x, which shakes hands.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { calls, converse, target } from './converse.mjs';

const client = new Client({ name: 'client-legacy', version: '1.0.0' }, { capabilities: {} });
const transport = target(url => new StreamableHTTPClientTransport(url), options => new StdioClientTransport(options));
await client.connect(transport);
await converse(
    (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    calls(),
    cursor => client.listTools(cursor === undefined ? {} : { cursor }),
);
await transport.terminateSession?.();
await client.close();
