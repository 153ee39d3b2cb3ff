// A server on the official TypeScript SDK 1.x over stdio, whose tool grow adds one.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'growing-legacy', version: '1.0.0' });
const text = value => ({ content: [{ type: 'text', text: value }] });
let grown = 0;
server.registerTool('grow', { description: 'Adds a tool.' }, () => {
    const name = `grown-${++grown}`;
    server.registerTool(name, {}, () => text(name));
    return text(name);
});
await server.connect(new StdioServerTransport());
