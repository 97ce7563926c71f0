"""Prints for each document whether jsonschema 3.2 accepts it. Input: the schemas, then one question per line."""

import json
import sys

from jsonschema import Draft6Validator, RefResolver
from jsonschema.exceptions import SchemaError

schemas = json.loads(sys.stdin.readline())
validators = {}
for line in sys.stdin:
    path, document = json.loads(line)
    if path is None:
        try:
            Draft6Validator.check_schema(document)
            print("true", flush=True)
        except SchemaError:
            print("false", flush=True)
        continue
    if isinstance(path, (bool, dict)):
        # An inline schema; null is printed where the validator ends with a traceback.
        try:
            resolver = RefResolver("/tiny/here-1.yml", path, handlers={"": lambda uri: schemas[uri]})
            print(json.dumps(Draft6Validator(path, resolver=resolver).is_valid(document)), flush=True)
        except Exception:
            print("null", flush=True)
        continue
    if path not in validators:
        resolver = RefResolver(path, schemas[path], handlers={"": lambda uri: schemas[uri]})
        validators[path] = Draft6Validator(schemas[path], resolver=resolver)
    print(json.dumps(validators[path].is_valid(document)), flush=True)
