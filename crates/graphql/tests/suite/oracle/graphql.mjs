// The errors of graphql-js: reads one request per line, as JSON with a text and optional variables, and
// writes the errors it finds, as JSON, per line.
//
//   node graphql.mjs BUNDLE < requests
//
// Started in a folder whose node_modules has `graphql`.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { schemaOf } from '../../../../../benches/benches/graphql/types.mjs';

const require = createRequire(process.cwd() + '/');
const g = require('graphql');
const schema = schemaOf(g, JSON.parse(readFileSync(process.argv[2], 'utf8')));

const told = (kind, errors) => errors.map((error) => {
  const { message, locations } = error.toJSON();
  return { kind, message, locations: (locations ?? []).map(({ line, column }) => [line, column]) };
});
function mistakes({ query: text, variables }) {
  let document;
  try {
    document = g.parse(text);
  } catch (error) {
    return told('syntax', [error]);
  }
  const invalid = g.validate(schema, document);
  if (invalid.length || variables === undefined) return told('validation', invalid);
  return told('variables', g.execute({ schema, document, variableValues: variables }).errors ?? []);
}

for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  process.stdout.write(JSON.stringify(mistakes(JSON.parse(line))) + '\n');
}
