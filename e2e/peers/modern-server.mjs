// A server on the official TypeScript SDK 2.x: "http" over Streamable HTTP, to be run with announce.mjs, "stdio" over its
// standard input. It answers handshake clients too, unless "reject" follows: the reference for a legacy client.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, fromJsonSchema } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const object = (properties, more = {}) => fromJsonSchema({ type: 'object', properties, ...more });
const text = value => ({ content: [{ type: 'text', text: value }] });

function build() {
    const server = new McpServer({ name: 'modern-server', version: '1.0.0', title: 'Modern' });

    server.registerTool('echo', {
        title: 'Echo',
        description: 'Gives the message back.',
        inputSchema: object({ message: { type: 'string' } }, { required: ['message'] }),
        annotations: { readOnlyHint: true },
        _meta: { 'example.com/kept': { n: 1 } },
    }, ({ message }) => ({ ...text(`Echo: ${message}`), _meta: { 'example.com/kept': [1, null] } }));

    server.registerTool('add', {
        description: 'Adds two numbers.',
        inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }, { required: ['a', 'b'] }),
        outputSchema: object({ sum: { type: 'number' } }, { required: ['sum'] }),
    }, ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }));

    server.registerTool('shape', {
        description: 'Has definitions in its schema.',
        inputSchema: object({ point: { $ref: '#/$defs/point' } }, {
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            $defs: { point: { type: 'object', properties: { x: { type: 'integer' }, y: { type: 'integer' } } } },
            required: ['point'],
            unevaluatedProperties: false,
        }),
    }, ({ point }) => text(`${point.x},${point.y}`));

    server.registerTool('region', {
        description: 'Mirrors one argument in a header.',
        inputSchema: object({ region: { type: 'string', 'x-mcp-header': 'Region' } }, { required: ['region'] }),
    }, ({ region }) => text(`region ${region}`));

    server.registerTool('steps', {
        description: 'Reports progress.',
        inputSchema: object({ steps: { type: 'integer', minimum: 1, maximum: 10 } }, { required: ['steps'] }),
    }, async ({ steps }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let i = 1; progressToken !== undefined && i <= steps; i++) {
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: i, total: steps } });
        }
        return text(`${steps} steps`);
    });

    server.registerTool('fail', {
        description: 'Fails as a tool does.',
        inputSchema: object({}),
    }, () => ({ ...text('It broke: \u{1F4A5}'), isError: true }));

    return server;
}

const [transport, legacy] = process.argv.slice(2);
if (transport === 'stdio') {
    serveStdio(build, { legacy });
} else {
    const handle = toNodeHandler(createMcpHandler(build, { legacy }));
    createServer((req, res) => void handle(req, res)).listen(0, '127.0.0.1');
}
