// The official TypeScript client 2.x with a person who says yes to everything.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { calls, converse, target } from './converse.mjs';

const client = new Client({ name: 'client-asked', version: '1.0.0' }, {
    versionNegotiation: { mode: { pin: '2026-07-28' } },
    capabilities: { elicitation: { form: {} } },
});
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { sure: true } }));
await client.connect(target(url => new StreamableHTTPClientTransport(url), options => new StdioClientTransport(options)));
await converse((name, args, options) => client.callTool({ name, arguments: args }, options), calls(), () => client.listTools());
await client.close();
