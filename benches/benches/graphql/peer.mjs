// Executes queries with graphql-js on the same bundle: the minimum work of a server built on it.
//
//   node peer.mjs BUNDLE answer  < requests   one JSON object {query, variables, operation} per line → one answer per line
//   node peer.mjs BUNDLE measure < requests   per request: CPU milliseconds of parse + validate + execute + print
//
// Start it in a directory whose node_modules has `graphql`.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pruned, schemaOf } from './types.mjs';

const require = createRequire(process.cwd() + '/');
const g = require('graphql');
const [bundlePath, mode] = process.argv.slice(2);
const bundle = JSON.parse(readFileSync(bundlePath, 'utf8'));
const schema = schemaOf(g, bundle);

// Requests.
const coded = (code) => (error) => {
  const { message, locations, path, extensions } = error.toJSON();
  return { message, locations, path, extensions: { code, ...extensions } };
};
function refused(code, errors) {
  return { status: 400, body: { errors: errors.map(coded(code)), extensions: { schemas: [] } } };
}
function answer({ query, variables, operation }) {
  let document;
  try {
    document = g.parse(query);
  } catch (error) {
    return refused('GRAPHQL_PARSE_FAILED', [error]);
  }
  const invalid = g.validate(schema, document);
  if (invalid.length) return refused('GRAPHQL_VALIDATION_FAILED', invalid);
  const context = { schemas: new Set() };
  const result = g.execute({
    schema, document, variableValues: variables ?? undefined, operationName: operation ?? undefined, contextValue: context,
  });
  if (!('data' in result)) {
    const chosen = g.getOperationAST(document, operation ?? undefined);
    return refused(chosen ? 'BAD_USER_INPUT' : 'OPERATION_RESOLUTION_FAILURE', result.errors);
  }
  const errors = result.errors?.map(coded('INTERNAL_SERVER_ERROR'));
  const body = { errors, data: pruned(result.data), extensions: { schemas: [...context.schemas] } };
  return { status: 200, body };
}

const requests = readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
for (const request of requests) {
  if (mode === 'answer') {
    const { status, body } = answer(request);
    process.stdout.write(JSON.stringify({ status, body: JSON.stringify(body) + '\n' }) + '\n');
    continue;
  }
  let bytes = 0;
  const run = () => (bytes = Buffer.byteLength(JSON.stringify(answer(request).body)));
  // Warm, as a server is.
  for (const until = performance.now() + 1500; performance.now() < until; ) run();
  let rounds = 0;
  const before = process.cpuUsage();
  for (const until = performance.now() + 3000; performance.now() < until || rounds < 3; rounds += 1) run();
  const { user, system } = process.cpuUsage(before);
  process.stdout.write(JSON.stringify({ bytes, milliseconds: (user + system) / 1000 / rounds }) + '\n');
}
