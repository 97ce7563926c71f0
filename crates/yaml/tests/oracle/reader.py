"""Reads YAML texts as PyYAML does. One JSON string a line in, one JSON answer a line out."""

import json
import struct
import sys

import yaml

LOADERS = {"c": yaml.CSafeLoader, "python": yaml.SafeLoader}


def typed(value, depth=0):
    if depth > 300:
        raise RecursionError
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", "nan" if value != value else struct.pack(">d", value).hex()]
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, list):
        return ["list", [typed(item, depth + 1) for item in value]]
    if isinstance(value, dict):
        return ["map", [[typed(key), typed(item, depth + 1)] for key, item in value.items()]]
    return ["other", type(value).__name__]


def answer(text, loader):
    try:
        return typed(yaml.load(text.encode(), Loader=loader))
    except Exception as error:  # whatever it is, the text is refused
        return ["refused", type(error).__name__]


def main():
    loader = LOADERS[sys.argv[1]]
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), loader)))


if __name__ == "__main__":
    main()
