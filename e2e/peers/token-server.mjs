// An authorization server on oidc-provider, to be run with announce.mjs: opaque tokens by client credentials for one resource, that live
// as many seconds as the first argument says. It prints {"granted":RESOURCE} for each, and {"refused":ERROR}.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const [lives, secret] = process.argv.slice(2);
const server = createServer();
server.listen(0, '127.0.0.1', () => {
    const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
        clients: [{
            client_id: 'gateway',
            client_secret: secret,
            grant_types: ['client_credentials'],
            redirect_uris: [],
            response_types: [],
        }],
        features: {
            devInteractions: { enabled: false },
            clientCredentials: { enabled: true },
            introspection: { enabled: true },
            revocation: { enabled: true },
            resourceIndicators: {
                enabled: true,
                getResourceServerInfo: (_ctx, resource) => ({
                    scope: 'call', audience: resource, accessTokenTTL: Number(lives), accessTokenFormat: 'opaque',
                }),
            },
        },
        ttl: { ClientCredentials: Number(lives) },
    });
    const print = value => process.stdout.write(`${JSON.stringify(value)}\n`);
    provider.on('grant.success', ctx => print({ granted: ctx.oidc.entities.ClientCredentials?.aud ?? '' }));
    provider.on('grant.error', (_ctx, error) => print({ refused: error.message }));
    server.on('request', provider.callback());
});
