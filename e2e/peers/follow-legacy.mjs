// The official TypeScript client 1.x, which is told on its GET stream.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Lists, follow } from './follow.mjs';

const [url, ...prefixes] = process.argv.slice(2);
const lists = new Lists();
const client = new Client({ name: 'follow-legacy', version: '1.0.0' }, { capabilities: {} });
client.setNotificationHandler(ToolListChangedNotificationSchema, async () => {
    try {
        lists.changed(null, (await client.listTools()).tools);
    } catch (error) {
        lists.changed(error);
    }
});
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
await follow(client, lists, prefixes);
await transport.terminateSession();
await client.close();
