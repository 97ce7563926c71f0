"""The minimum work of a bundler in Python: read, parse, hash and dump every file, with PyYAML's C loader.

With a third argument, datafiles are also validated against their schemas, with jsonschema.
"""

import hashlib
import json
import sys
from pathlib import Path

import yaml


def documents(folder):
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix in {".yml", ".yaml", ".json"}:
            content = path.read_bytes()
            document = yaml.load(content, Loader=yaml.CSafeLoader)
            document["$file_sha256sum"] = hashlib.sha256(content).hexdigest()
            yield str(path)[len(folder) :], document


def resources(folder):
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            name = str(path)[len(folder) :]
            digest = hashlib.sha256(content).hexdigest()
            yield name, {"path": name, "content": content.decode(), "sha256sum": digest}


def check(bundle):
    from jsonschema import Draft6Validator, RefResolver

    schemas = bundle["schemas"]
    validators = {}
    for path, document in bundle["data"].items():
        schema = document["$schema"]
        if schema not in validators:
            resolver = RefResolver(schema, schemas[schema], handlers={"": lambda uri: schemas[uri]})
            validators[schema] = Draft6Validator(schemas[schema], resolver=resolver)
        # Remove the key that the bundler added.
        bare = {key: value for key, value in document.items() if key != "$file_sha256sum"}
        assert validators[schema].is_valid(bare), path


def main():
    repo, output, *more = sys.argv[1:]
    bundle = {
        "data": dict(documents(f"{repo}/data")),
        "resources": dict(resources(f"{repo}/resources")),
        "schemas": dict(documents(f"{repo}/schemas")),
    }
    if more:
        check(bundle)
    with open(output, "w", encoding="ascii") as file:
        json.dump(bundle, file, sort_keys=True, separators=(",", ":"))


if __name__ == "__main__":
    main()
