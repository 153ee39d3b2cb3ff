// What both clients do once they are connected: list every page, make the calls that stdin names, print one document.
// A call that throws is recorded by what the peer's error says.
import { readFileSync } from 'node:fs';

export const calls = () => JSON.parse(readFileSync(0, 'utf8')) ?? [];

export async function converse(client, calls, listPage) {
    const tools = [];
    let cursor;
    do {
        const page = await listPage(cursor);
        tools.push(...page.tools);
        cursor = page.nextCursor;
    } while (cursor !== undefined);

    const results = [];
    for (const { name, arguments: args, progress } of calls) {
        let seen = 0;
        const options = progress ? { onprogress: () => void seen++ } : undefined;
        try {
            const result = await client(name, args, options);
            results.push({ name, result, ...(progress ? { progress: seen } : {}) });
        } catch (error) {
            results.push({ name, error: { code: error.code, message: error.message, data: error.data } });
        }
    }
    console.log(JSON.stringify({ tools, results }));
}

// target reads the command line: a URL, or a command with its arguments. E2E_ENV is the child's environment as JSON.
export function target(remote, stdio) {
    const [first, ...args] = process.argv.slice(2);
    if (/^(https?|ws):/.test(first)) return remote(new URL(first));
    return stdio({ command: first, args, env: JSON.parse(process.env.E2E_ENV ?? '{}'), stderr: 'ignore' });
}
