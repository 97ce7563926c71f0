// The query page: sends the query and shows the response. Every string from the server is inserted as text,
// never as HTML.

const LARGEST_SHOWN = 2 * 1024 * 1024;
const INTROSPECTION = `{
  __schema {
    queryType { name }
    types {
      kind
      name
      description
      fields(includeDeprecated: true) { name description args { name type { ...T } } type { ...T } }
      inputFields { name type { ...T } }
      enumValues(includeDeprecated: true) { name }
      possibleTypes { name }
    }
  }
}
fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`;

const of = (id) => document.getElementById(id);
const editor = of('query');
const variables = of('variables');
const bundle = of('bundle');

// Control, bidirectional and invisible characters: the list of crates/diagnostics/src/shown.rs, except for line breaks and tabs.
const UNSAFE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/gu;

/** Text with unsafe characters as JSON escapes. */
function visible(text) {
  const escape = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replace(UNSAFE, (found) => found.split('').map(escape).join(''));
}

/** A new element with text or children in it. */
function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.map((child) => (typeof child === 'string' ? visible(child) : child)));
  return made;
}

function link(text, click) {
  const button = element('button', { type: 'button', className: 'link code' }, text);
  button.addEventListener('click', click);
  return button;
}

// Requests to the server.

let token = '';
let waiting = []; // actions to retry once the user has entered a token

class Unauthorized extends Error {}

/** Sends a request. If it is refused because the token is missing, it is retried once the user enters one. */
async function request(path, again, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = token;
  const response = await fetch(path, { ...options, headers, credentials: 'same-origin' });
  if (response.status === 401) {
    if (!waiting.includes(again)) waiting.push(again);
    of('ask-token').hidden = false;
    of('token').focus();
    throw new Unauthorized('the server requires a token');
  }
  return response;
}

of('ask-token').addEventListener('submit', (event) => {
  event.preventDefault();
  token = of('token').value;
  of('token').value = '';
  of('ask-token').hidden = true;
  const refused = waiting;
  waiting = [];
  refused.forEach((again) => again());
});

const target = () => (bundle.value ? `/graphqlsha/${bundle.value}` : '/graphql');

function post(query, given, again, signal) {
  return request(target(), again, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify({ query, variables: given }),
    signal,
  });
}

// Bundles.

function addBundle(sha) {
  const existing = [...bundle.options].find((option) => option.value === sha);
  if (existing) return existing;
  const option = element('option', { value: sha }, sha.slice(0, 12));
  bundle.append(option);
  return option;
}

async function listBundles() {
  try {
    const response = await request('/cache', listBundles);
    if (!response.ok) return;
    for (const sha of JSON.parse(await response.text()).bundles) {
      const option = addBundle(sha);
      const info = await request(`/git-commit-info/${sha}`, listBundles);
      if (!info.ok) continue;
      const { commit, timestamp } = await info.json();
      const when = Number(timestamp) ? `, ${new Date(timestamp * 1000).toISOString().slice(0, 16).replace('T', ' ')}` : '';
      option.textContent = visible(`${sha.slice(0, 12)} (commit ${String(commit).slice(0, 12)}${when})`);
    }
  } catch {
    // without the list, the latest bundle can still be queried
  }
}

// Running a query.

let running = null;
let saved = null;

function setStatus(state, text) {
  of('status').textContent = text;
  of('status').dataset.state = state;
}

/** The variables; throws if they are not a JSON object. */
function readVariables() {
  const text = variables.value.trim();
  if (!text) return undefined;
  const value = JSON.parse(text);
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('expected an object');
  return value;
}

function checkVariables() {
  let message = '';
  try {
    readVariables();
  } catch (error) {
    message = `The variables are not valid JSON: ${error.message}`;
  }
  of('variables-error').textContent = message;
  variables.setAttribute('aria-invalid', message !== '');
  return !message;
}

async function run() {
  if (!checkVariables()) {
    setStatus('failed', 'not sent');
    variables.focus();
    return;
  }
  running?.abort();
  const mine = new AbortController();
  running = mine;
  of('cancel').disabled = false;
  setStatus('running', 'running …');
  const start = performance.now();
  try {
    const response = await post(editor.value, readVariables(), run, mine.signal);
    const body = await response.blob();
    const text = await body.text();
    if (running !== mine) return;
    const time = Math.round(performance.now() - start);
    const errors = show(body, text);
    const parts = [response.status, `${time} ms`, size(body.size)];
    if (errors) parts.push(`errors: ${errors}`);
    setStatus(response.ok && !errors ? 'done' : 'failed', parts.join(' · '));
  } catch (error) {
    if (running !== mine) return;
    if (!(error instanceof Unauthorized)) show(new Blob(), '');
    setStatus('failed', error.name === 'AbortError' ? 'cancelled' : error.message);
  }
  running = null;
  of('cancel').disabled = true;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Breaks and indents JSON without reading its values: numbers and the order of keys do not change. */
function indented(text) {
  let out = '';
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\[^][^"\\]*)*"?|[{[]\s*[}\]]|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (token === '{' || token === '[') {
      depth += 1;
      out += token + line();
    } else if (token === '}' || token === ']') {
      depth = Math.max(depth - 1, 0);
      out += line() + token;
    } else if (token === ',') out += token + line();
    else out += token === ':' ? ': ' : token;
  }
  return out;
}

/** Shows a response; returns the number of its errors. */
function show(body, text) {
  let response = null;
  try {
    response = JSON.parse(text);
  } catch {
    // not JSON: shown unchanged
  }
  const part = text.slice(0, LARGEST_SHOWN);
  of('result').textContent = visible(response === null ? part : indented(part));
  of('cut').textContent = part.length < text.length ? `Only the first ${size(LARGEST_SHOWN)} are shown.` : '';
  if (saved) URL.revokeObjectURL(saved);
  saved = body.size ? URL.createObjectURL(body) : null;
  of('save').hidden = !saved;
  if (saved) of('save').href = saved;
  const errors = Array.isArray(response?.errors) ? response.errors : [];
  of('errors').hidden = errors.length === 0;
  of('errors').replaceChildren(...errors.map(shownError));
  return errors.length;
}

function shownError({ message, locations, path }) {
  const item = element('li', {}, path ? `${path.join('.')}: ` : '');
  if (!locations?.length) {
    item.append(visible(String(message)));
    return item;
  }
  const [{ line, column }] = locations;
  item.append(link(`${line}:${column} ${message}`, () => moveTo(line, column)));
  return item;
}

function moveTo(line, column) {
  const lines = editor.value.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const offset = Math.min(before + column - 1, editor.value.length);
  editor.focus();
  editor.setSelectionRange(offset, offset);
}

// Typing.

let leaving = false; // Esc was pressed: the next Tab moves the focus

/** Replaces the selection with text, so that it can be undone. */
function insert(text) {
  editor.focus();
  if (!document.execCommand('insertText', false, text)) {
    editor.setRangeText(text, editor.selectionStart, editor.selectionEnd, 'end');
    typed();
  }
}

/** Indents or unindents the selected lines. */
function shift(outwards) {
  const { value, selectionStart, selectionEnd } = editor;
  const start = value.lastIndexOf('\n', selectionStart - 1) + 1;
  const alone = selectionStart === selectionEnd;
  if (!outwards && alone) {
    insert('  ');
    return;
  }
  const lines = value.slice(start, selectionEnd);
  const shifted = outwards ? lines.replace(/^ {1,2}/gm, '') : lines.replace(/^/gm, '  ');
  if (shifted === lines) return;
  editor.setSelectionRange(start, selectionEnd);
  insert(shifted);
  const end = start + shifted.length;
  editor.setSelectionRange(alone ? end : start, end);
}

function pressed(event) {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
    return;
  }
  if (event.target !== editor || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Tab' && !leaving) {
    event.preventDefault();
    shift(event.shiftKey);
  } else if (event.key === 'Enter') {
    event.preventDefault();
    const before = editor.value.slice(0, editor.selectionStart);
    const [indentation] = /^ */.exec(before.slice(before.lastIndexOf('\n') + 1));
    insert(`\n${indentation}${/[{(]\s*$/.test(before) ? '  ' : ''}`);
  }
  if (event.key !== 'Shift') leaving = event.key === 'Escape';
}

// The address contains the query and the variables, in its fragment, and the selected bundle.

let writing = 0;

function typed() {
  checkVariables();
  clearTimeout(writing);
  writing = setTimeout(writeAddress, 300);
}

function writeAddress() {
  const params = new URLSearchParams();
  if (editor.value) params.set('query', editor.value);
  if (variables.value.trim()) params.set('variables', variables.value);
  try {
    history.replaceState(null, '', params.size ? `${target()}#${params}` : target());
  } catch {
    // too long for an address
  }
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  editor.value = given.get('query') ?? editor.value;
  variables.value = given.get('variables') ?? variables.value;
  const [, sha] = /^\/graphqlsha\/([0-9a-f]+)/.exec(location.pathname) ?? [];
  bundle.value = sha ? addBundle(sha).value : '';
  checkVariables();
  if (given.get('run') === '1') run();
}

// The schema.

let types = new Map();
let shownTarget = null; // the target whose schema is shown
let trail = [];

async function browse() {
  of('browse').setAttribute('aria-expanded', !of('schema').hidden);
  if (of('schema').hidden || shownTarget === target()) return;
  const from = target();
  of('schema-state').textContent = 'loading …';
  try {
    const response = await post(INTROSPECTION, undefined, browse);
    const { data, errors } = await response.json();
    if (!data) throw new Error(errors?.[0]?.message ?? `the server answers ${response.status}`);
    types = new Map(data.__schema.types.map((type) => [type.name, type]));
    types.query = types.get(data.__schema.queryType.name);
    shownTarget = from;
    of('schema-state').textContent = '';
    list();
  } catch (error) {
    of('schema-state').textContent = visible(`No schema: ${error.message}`);
  }
}

function list() {
  trail = [];
  of('type').hidden = true;
  of('lists').hidden = false;
  const wanted = of('filter').value.trim().toLowerCase();
  const matches = ({ name }) => name.toLowerCase().includes(wanted);
  const roots = (types.query?.fields ?? []).filter(matches);
  const others = [...types.values()].filter((type) => type !== types.query && !type.name.startsWith('__') && matches(type));
  others.sort((a, b) => (a.name < b.name ? -1 : 1));
  const rootLink = (field) => link(field.name, () => insertSkeleton(field));
  of('roots').replaceChildren(...roots.map((field) => element('li', {}, rootLink(field), ': ', typeLink(field.type))));
  of('types').replaceChildren(...others.map((type) => element('li', {}, typeLink(type))));
  if (shownTarget) of('schema-state').textContent = `fields: ${roots.length}, types: ${others.length}`;
}

const core = (type) => (type.ofType ? core(type.ofType) : type);

function written(type) {
  if (type.kind === 'NON_NULL') return `${written(type.ofType)}!`;
  return type.kind === 'LIST' ? `[${written(type.ofType)}]` : type.name;
}

function typeLink(type) {
  const { name } = core(type);
  return link(written(type), () => open(name));
}

function open(name) {
  trail.push(name);
  const type = types.get(name);
  const members = type.fields ?? type.inputFields ?? type.enumValues ?? [];
  of('type-name').textContent = visible(name);
  const kind = [type.kind.toLowerCase().replace('_', ' '), type.description].filter(Boolean).join(': ');
  of('type-kind').textContent = visible(kind);
  const made = members.map((member) => shownMember(member));
  for (const one of type.possibleTypes ?? []) made.push(element('li', {}, '… on ', link(one.name, () => open(one.name))));
  of('members').replaceChildren(...made);
  of('type').hidden = false;
  of('lists').hidden = true;
  of('type-name').focus();
}

function shownMember({ name, args = [], type, description }) {
  const item = element('li', { className: 'code', title: visible(description ?? '') }, name);
  args.forEach((argument, index) => item.append(index ? ', ' : '(', visible(`${argument.name}: `), typeLink(argument.type)));
  if (args.length) item.append(')');
  if (type) item.append(': ', typeLink(type));
  return item;
}

/** Inserts a selection of all fields that need no arguments or subfields. */
function insertSkeleton({ name, type }) {
  const fields = types.get(core(type).name).fields ?? [];
  const isLeaf = (field) => ['SCALAR', 'ENUM'].includes(core(field.type).kind) && !field.args.some((one) => one.type.kind === 'NON_NULL');
  const leaves = fields.filter(isLeaf).slice(0, 12).map((field) => field.name);
  const inner = leaves.length ? leaves : ['__typename'];
  const selection = fields.length ? ` {\n    ${inner.join('\n    ')}\n  }` : '';
  if (editor.value.trim()) {
    const last = editor.value.lastIndexOf('}');
    if (editor.selectionStart > last) editor.setSelectionRange(last, last); // within the operation, not after it
    insert(`  ${name}${selection}\n`);
  } else {
    editor.select();
    insert(`{\n  ${name}${selection}\n}\n`);
  }
}

// Start.

document.addEventListener('keydown', pressed);
editor.addEventListener('input', typed);
variables.addEventListener('input', typed);
of('run').addEventListener('click', run);
of('cancel').addEventListener('click', () => running?.abort());
of('browse').addEventListener('click', () => {
  of('schema').hidden = !of('schema').hidden;
  browse();
});
of('filter').addEventListener('input', list);
of('back').addEventListener('click', () => {
  trail.pop();
  const before = trail.pop();
  if (before) open(before);
  else list();
});
bundle.addEventListener('change', () => {
  writeAddress();
  browse();
});
addEventListener('hashchange', readAddress);
readAddress();
listBundles();
