// A server built on Express, Apollo Server and graphql-js: the peer of the `server` benchmark, and the source of the recorded
// HTTP behaviour.
//
//   node peer.mjs PORT BUNDLE…   listens on 127.0.0.1 and prints the port, any free one for 0; the last bundle is the latest
//
// Start it in a directory whose node_modules has `express`, `@apollo/server`, `@as-integrations/express5` and `graphql`, with
// NODE_ENV=production.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pruned, schemaOf } from '../graphql/types.mjs';

const require = createRequire(process.cwd() + '/');
const express = require('express');
const graphql = require('graphql');
const { ApolloServer } = require('@apollo/server');
const { ApolloServerPluginLandingPageLocalDefault: landingPage } = require('@apollo/server/plugin/landingPage/default');
const { expressMiddleware } = require('@as-integrations/express5');

const [port, ...paths] = process.argv.slice(2);
const held = new Map();
let latest;

/** Finishes every answer: removes empty objects from lists and adds the schemas that were read. */
const finish = {
  requestDidStart: async () => ({
    willSendResponse: async ({ response, contextValue }) => {
      const { singleResult } = response.body;
      singleResult.data = pruned(singleResult.data);
      singleResult.extensions = { ...singleResult.extensions, schemas: [...contextValue.schemas] };
    },
  }),
};

for (const path of paths) {
  const text = readFileSync(path, 'utf8');
  latest = createHash('sha256').update(text).digest('hex');
  const bundle = JSON.parse(text);
  const server = new ApolloServer({
    schema: schemaOf(graphql, bundle),
    introspection: true,
    csrfPrevention: false,
    stopOnTerminationSignals: false,
    plugins: [landingPage({ embed: true }), finish],
  });
  await server.start();
  const answer = expressMiddleware(server, { context: async () => ({ schemas: new Set() }) });
  held.set(latest, { answer, commit: bundle.git_commit, timestamp: bundle.git_commit_timestamp });
}

const app = express();
app.use((request, _, next) => {
  const [parameters] = /\?.*/.exec(request.url) ?? [''];
  if (request.path === '/graphql') request.url = `/graphqlsha/${latest}${parameters}`;
  next();
});
app.use(express.json());
app.use((request, response, next) => {
  const [, sha] = /^\/graphqlsha\/([^/?]+)/.exec(request.url) ?? [];
  if (!held.has(sha)) return next();
  request.body ??= {};
  return held.get(sha).answer(request, response, next);
});

/** A route of the bundle that the path names, or of the latest. */
function route(path, send) {
  app.get(path, (request, response) => {
    const sha = request.params.sha ?? latest;
    if (held.has(sha)) send(response, held.get(sha));
    else response.status(404).send(`Bundle ${sha} not found`);
  });
}
route('/git-commit{/:sha}', (response, { commit }) => response.send(commit));
route('/git-commit-info{/:sha}', (response, { commit, timestamp }) => {
  response.setHeader('Content-Type', 'application/json');
  response.send(JSON.stringify({ commit, timestamp }));
});
app.get('/sha256', (_, response) => response.send(latest));
app.post('/reload', (_, response) => response.send());
app.get('/healthz', (_, response) => response.send());
app.get('/', (_, response) => response.redirect('/graphql'));

const listener = app.listen(Number(port), '127.0.0.1', () => process.stdout.write(`${listener.address().port}\n`));
