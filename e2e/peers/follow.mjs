// What both following clients do: for each prefix of the command line have its server grow, and follow the lists that come
// with the notices until the new tool is in one. A stream that opens after a notice misses it, so the server may grow twice.
export async function follow(client, lists, prefixes) {
    const before = (await client.listTools()).tools.map(tool => tool.name);
    const grown = {};
    for (const prefix of prefixes) {
        for (let attempt = 1; attempt <= 2 && !(prefix in grown); attempt++) {
            const { content: [{ text }] } = await client.callTool({ name: `${prefix}grow`, arguments: {} });
            if (await lists.has(prefix + text, 20_000)) grown[prefix] = prefix + text;
        }
    }
    const results = {};
    for (const [prefix, name] of Object.entries(grown)) {
        results[prefix] = (await client.callTool({ name, arguments: {} })).isError !== true;
    }
    console.log(JSON.stringify({ before, grown, results, stale: lists.stale }));
}

// Lists are those that a client was given with a notice.
export class Lists {
    #names = [];
    #wake = () => {};
    stale = 0; // notices whose list could not be had

    changed(error, tools) {
        if (error) this.stale++;
        else this.#names = tools.map(tool => tool.name);
        this.#wake();
    }

    async has(name, limit) {
        const over = AbortSignal.timeout(limit);
        while (!this.#names.includes(name) && !over.aborted) {
            await new Promise(resolve => {
                this.#wake = resolve;
                over.addEventListener('abort', resolve, { once: true });
            });
        }
        return this.#names.includes(name);
    }
}
