// The GraphQL types of a bundle, with resolvers for graphql-js: shared by the peers of the benchmarks.
//
// After an execution, the set `context.schemas` contains the `$schema` of every object that was read.

/** The executable schema of a parsed bundle. `g` is the module `graphql` of the caller. */
export function schemaOf(g, bundle) {
  for (const kind of ['data', 'resources']) for (const [path, file] of Object.entries(bundle[kind])) file.path = path;
  const files = Object.values(bundle.data);
  const bySchema = groupBy(files);
  const confs = Array.isArray(bundle.graphql) ? bundle.graphql : bundle.graphql.confs;
  function groupBy(files) {
    const groups = new Map();
    for (const file of files) {
      if (!groups.has(file.$schema)) groups.set(file.$schema, []);
      groups.get(file.$schema).push(file);
    }
    return groups;
  }
  const described = new Map(confs.map((conf) => [conf.name, conf]));

  const isReference = (value) =>
    value.constructor === Object && Object.keys(value).length === 1 && '$ref' in value;
  function target(reference) {
    const [path] = /^[^$]*/.exec(reference.$ref);
    const file = bundle.data[path];
    if (file === undefined) return null;
    if (path !== reference.$ref) throw new Error('Invalid JSON pointer.');
    return file;
  }
  function follow(value) {
    if (value === undefined) return null;
    if (Array.isArray(value)) {
      return value.map(isReference).every(Boolean) ? value.map(target).flat() : value;
    }
    return isReference(value) ? target(value) : value;
  }

  // Backreferences.
  const pointing = new Map();
  function targets(value, path, found) {
    if (Array.isArray(value)) value.forEach((item) => targets(item, path, found));
    else if (value === null || typeof value !== 'object') return;
    else if (path.length > 0) targets(value[path[0]], path.slice(1), found);
    else if (typeof value.$ref === 'string') found(value.$ref);
  }
  function back(synthetic) {
    const key = JSON.stringify([synthetic.schema, synthetic.subAttr]);
    if (!pointing.has(key)) {
      const table = new Map();
      for (const file of bySchema.get(synthetic.schema) ?? []) {
        targets(file, synthetic.subAttr.split('.'), (path) => {
          if (!table.has(path)) table.set(path, new Set());
          table.get(path).add(file);
        });
      }
      pointing.set(key, table);
    }
    return pointing.get(key);
  }

  // The filter language.
  function fieldOf(conf, name) {
    const own = conf.fields.find((field) => field.name === name);
    if (own || conf.interfaceResolve?.strategy !== 'fieldMap') return own;
    for (const mapped of Object.values(conf.interfaceResolve.fieldMap)) {
      const found = described.get(mapped)?.fields.find((field) => field.name === name);
      if (found) return found;
    }
  }
  const same = (raw, value) => (raw ?? null) === value;
  function compile(conf, filter) {
    if (filter === null || typeof filter !== 'object') return () => false;
    const tests = Object.entries(filter).map(([name, value]) => {
      const field = fieldOf(conf, name);
      if (!field) {
        throw new g.GraphQLError(`Field "${name}" does not exist on type "${conf.name}"`, {
          extensions: { code: 'BAD_FILTER_FIELD', gqlType: conf.name },
        });
      }
      if (field.isList && Array.isArray(value)) {
        return (source) => {
          const raw = source[name];
          return Array.isArray(raw) && raw.length === value.length && raw.every((item, i) => item === value[i]);
        };
      }
      const every = (test) => (source) => (Array.isArray(source) ? source.every(test) : test(source));
      if (value !== null && typeof value === 'object' && Object.hasOwn(value, 'in')) {
        const set = new Set(value.in);
        return every((source) => name in source && set.has(source[name]));
      }
      if (value !== null && typeof value === 'object' && Object.hasOwn(value, 'filter')) {
        const inner = described.get(field.type);
        const passes = inner && value.filter !== null ? compile(inner, value.filter) : undefined;
        return every((source) => {
          const raw = source[name];
          const found = raw === null ? null : follow(raw);
          if (found === null) return false;
          if (!inner) throw new TypeError("Cannot read properties of undefined (reading 'name')");
          if (!passes) throw new TypeError('Cannot convert undefined or null to object');
          return passes(found);
        });
      }
      if (value !== null && typeof value === 'object' && Object.hasOwn(value, 'ne')) {
        return every((source) => value.ne !== (source[name] ?? null));
      }
      return (source) => same(source[name], value);
    });
    return (source) => tests.every((test) => test(source));
  }

  // The schema.
  const untyped = (ast, variables) => g.valueFromASTUntyped(ast, variables);
  const scalars = {
    string: g.GraphQLString,
    int: g.GraphQLInt,
    float: g.GraphQLFloat,
    boolean: g.GraphQLBoolean,
    json: new g.GraphQLScalarType({
      name: 'JSON',
      serialize: (value) => JSON.stringify(value),
      parseValue: (value) => value,
      parseLiteral: untyped,
    }),
  };
  const types = {};
  function byDefault(source, _, context, { fieldName }) {
    if (source?.$schema !== undefined && source.$schema !== null) context.schemas.add(source.$schema);
    return fieldName === 'schema' ? source.$schema : follow(source[fieldName]);
  }
  function fieldDefinition(field) {
    let type = scalars[field.type] ?? types[field.type];
    if (field.isList) type = new g.GraphQLList(new g.GraphQLNonNull(type));
    if (field.isRequired) type = new g.GraphQLNonNull(type);
    const text = { type: g.GraphQLString };
    if (field.datafileSchema) {
      const conf = described.get(field.type);
      const searchable = conf.fields.filter((one) => one.isSearchable).map((one) => one.name);
      const args = Object.fromEntries([...searchable, 'path'].map((name) => [name, text]));
      const resolve = (_, given) => {
        const found = bySchema.get(field.datafileSchema);
        if (!found) return [];
        const tests = [];
        for (const [name, value] of Object.entries(given)) {
          if (value === null || value === undefined) continue;
          tests.push(name === 'filter' ? compile(conf, value) : (file) => same(file[name], value));
        }
        return tests.length ? found.filter((file) => tests.every((test) => test(file))) : found;
      };
      return { type, args: { ...args, filter: { type: scalars.json } }, resolve };
    }
    if (field.synthetic) {
      return { type, resolve: (source) => [...(back(field.synthetic).get(source.path) ?? [])] };
    }
    if (field.isResource && field.resolveResource && field.type === 'string') {
      return { type: types.Resource_v1, resolve: (source) => bundle.resources[source[field.name]] ?? null };
    }
    if (field.isResource && field.type === 'Resource_v1') {
      const resolve = (_, { path, schema }) => {
        if (path) return [bundle.resources[path] ?? null];
        const all = Object.values(bundle.resources);
        return schema ? all.filter((one) => one.$schema === schema) : all;
      };
      return { type, args: { path: text, schema: text }, resolve };
    }
    return { type, resolve: byDefault };
  }
  function typeName(conf, source) {
    const { strategy, field, fieldMap } = conf.interfaceResolve;
    if (strategy === 'fieldMap') return fieldMap[source[field]];
    const found = confs.find((one) => one.datafile !== undefined && one.datafile === source.$schema);
    return found?.isInterface ? typeName(found, source) : found?.name;
  }
  for (const conf of confs) {
    const config = {
      name: conf.name,
      fields: () => Object.fromEntries(conf.fields.map((field) => [field.name, fieldDefinition(field)])),
      interfaces: () => {
        const own = described.get(conf.interface);
        const isFile = conf.datafile !== undefined || own?.datafile !== undefined;
        const names = [conf.interface, isFile ? 'DatafileObject_v1' : undefined];
        return [...new Set(names)].filter((name) => types[name] && name !== conf.name).map((name) => types[name]);
      },
    };
    types[conf.name] = conf.isInterface
      ? new g.GraphQLInterfaceType({ ...config, resolveType: (source) => typeName(conf, source) })
      : new g.GraphQLObjectType(config);
  }
  const objects = Object.values(types).filter((type) => type instanceof g.GraphQLObjectType);
  const schema = new g.GraphQLSchema({ query: types.Query, types: objects });
  g.assertValidSchema(schema);
  return schema;
}

/** The data of an answer without the empty objects in its lists. */
export function pruned(value) {
  if (Array.isArray(value)) {
    const kept = value.filter((item) => !(item !== null && typeof item === 'object' && !Array.isArray(item) && Object.keys(item).length === 0));
    return kept.map(pruned);
  }
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, pruned(inner)]));
}
