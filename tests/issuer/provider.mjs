// An OpenID Provider for the tests: JWT access tokens with resource indicators (RFC 8707, RFC 9068).
// Its settings come as JSON in ISSUER_SETTINGS: port, keys (private JWKs), clients, scopes, ttl, alg.
// Each request is a line on stdout, so that tests can count them.
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const settings = JSON.parse(process.env.ISSUER_SETTINGS);
const issuer = `http://127.0.0.1:${settings.port}`;

const provider = new Provider(issuer, {
  jwks: { keys: settings.keys },
  clients: settings.clients,
  scopes: settings.scopes,
  cookies: { keys: ['of a test'] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/consent/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: settings.scopes.join(' '),
        audience: resource,
        accessTokenTTL: settings.ttl,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: settings.alg } },
      }),
    },
  },
});

// Whoever asks is alice, and she consents to everything.
async function consent(request, response) {
  const { params, prompt } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    await provider.interactionFinished(request, response, { login: { accountId: 'alice' } });
    return;
  }
  const grant = new provider.Grant({ accountId: 'alice', clientId: params.client_id });
  grant.addOIDCScope(['openid', ...settings.scopes].join(' '));
  for (const resource of [params.resource].flat().filter(Boolean)) {
    grant.addResourceScope(resource, settings.scopes.join(' '));
  }
  const result = { consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

const callback = provider.callback();
createServer(async (request, response) => {
  console.log(`${request.method} ${request.url.split('?')[0]}`);
  if (request.url.startsWith('/consent/')) {
    await consent(request, response);
    return;
  }
  callback(request, response);
}).listen(settings.port, '127.0.0.1', () => console.log('ready'));
