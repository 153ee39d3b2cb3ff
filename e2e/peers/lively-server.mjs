// A server on the official TypeScript SDK 2.x that changes, asks and tells: "http" over Streamable HTTP, to be run with
// announce.mjs, "stdio" over its standard input.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, fromJsonSchema, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const object = (properties, more = {}) => fromJsonSchema({ type: 'object', properties, ...more });
const text = value => ({ content: [{ type: 'text', text: value }] });
const http = process.argv[2] !== 'stdio';
let grown = 0;
let handler;

function build() {
    const server = new McpServer({ name: 'lively-server', version: '1.0.0' }, { capabilities: { logging: {} } });
    const add = n => server.registerTool(`grown-${n}`, { inputSchema: object({}) }, () => text(`grown ${n}`));
    for (let n = 1; n <= grown; n++) add(n);

    server.registerTool('grow', { description: 'Adds a tool.', inputSchema: object({}) }, () => {
        grown++;
        // Over HTTP each request has a server of its own; over stdio the one there is tells by itself.
        if (http) handler.notify.toolsChanged();
        else add(grown);
        return text(`grown-${grown}`);
    });

    server.registerTool('confirm', {
        description: 'Asks a person first.',
        inputSchema: object({ what: { type: 'string' } }, { required: ['what'] }),
    }, ({ what }, ctx) => {
        const answer = ctx.mcpReq.inputResponses?.confirm;
        if (answer) return text(`${what}: ${answer.action} ${answer.content?.sure} ${ctx.mcpReq.requestState()}`);
        return inputRequired({
            inputRequests: {
                confirm: inputRequired.elicit({
                    message: `${what}?`,
                    requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] },
                }),
            },
            requestState: `asked for ${what}`,
        });
    });

    server.registerTool('tell', { description: 'Logs as it goes.', inputSchema: object({}) }, async (_, ctx) => {
        await ctx.mcpReq.log('debug', 'in detail');
        await ctx.mcpReq.log('warning', { n: 1 }, 'teller');
        await ctx.mcpReq.log('error', 'loudly');
        return text('told');
    });

    server.registerTool('steps', {
        description: 'Reports progress.',
        inputSchema: object({ steps: { type: 'integer' } }, { required: ['steps'] }),
    }, async ({ steps }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let i = 1; progressToken !== undefined && i <= steps; i++) {
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: i, total: steps } });
        }
        return text(`${steps} steps`);
    });
    return server;
}

if (http) {
    handler = createMcpHandler(build);
    const handle = toNodeHandler(handler);
    createServer((req, res) => void handle(req, res)).listen(0, '127.0.0.1');
} else {
    serveStdio(build);
}
