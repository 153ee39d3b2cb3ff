// The official TypeScript client 2.x, which listens by itself where it is told what to do with a changed list.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Lists, follow } from './follow.mjs';

const [url, ...prefixes] = process.argv.slice(2);
const lists = new Lists();
const client = new Client({ name: 'follow-modern', version: '1.0.0' }, {
    versionNegotiation: { mode: { pin: '2026-07-28' } },
    listChanged: { tools: { onChanged: (error, tools) => lists.changed(error, tools) } },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await follow(client, lists, prefixes);
await client.close();
