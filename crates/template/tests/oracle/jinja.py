"""Renders each template of stdin as the established runtime would: Jinja2 with its functions, filters and tags."""

import base64
import hashlib
import json
import re
import signal
import sys
import textwrap
import warnings
from urllib import parse

import jinja2
import yaml
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import SandboxedEnvironment
from jsonpath_ng.ext import parse as parse_jsonpath

warnings.simplefilter("ignore")

EXTRA = dict(
    block_start_string="{{%",
    block_end_string="%}}",
    variable_start_string="{{{",
    variable_end_string="}}}",
    comment_start_string="{{#",
    comment_end_string="#}}",
)


class Base64(Extension):
    tags = {"b64encode"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endb64encode"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_encode"), [], [], body).set_lineno(line)

    @staticmethod
    def _encode(caller):
        return base64.b64encode(textwrap.dedent(caller()).encode()).decode()


class RaiseError(Extension):
    tags = {"raise_error"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        message = parser.parse_expression()
        return nodes.CallBlock(self.call_method("_raise", [message]), [], [], []).set_lineno(line)

    @staticmethod
    def _raise(message, caller):
        raise jinja2.TemplateRuntimeError(message)


def hash_list(items):
    texts = []
    for item in list(items):
        if isinstance(item, (list, dict)):
            raise RuntimeError("not plain")
        texts.append(str(item))
    return hashlib.sha256(("a" + "".join(sorted(texts))).encode()).hexdigest()


def flatten(value, parent_key="", sep="."):
    flat = []
    for key, item in value.items():
        if item is None:
            continue
        name = parent_key + sep + key if parent_key else key
        if isinstance(item, dict):
            flat.extend(flatten(item, name, sep=sep).items())
        else:
            flat.append((name, str(item)))
    return dict(flat)


def find(value, path):
    assert path is not None and len(path) > 0
    return parse_jsonpath(path).find(value)


def pointer(path):
    parts = [part[1:-1] if re.match(r"\[\d\]", part) else part for part in path.split(".")]
    return "/" + "/".join(parts)


FILTERS = {
    "json_to_dict": json.loads,
    "yaml_to_dict": yaml.safe_load,
    "urlescape": lambda string, safe="/", encoding=None: parse.quote(string, safe=safe, encoding=encoding),
    "urlunescape": lambda string, encoding=None: parse.unquote(string, encoding=encoding or "utf-8"),
    "eval": lambda text, **variables: jinja2.Template(text).render(**variables),
    "extract_jsonpath": lambda value, jsonpath: [found.value for found in find(value, jsonpath)],
    "matches_jsonpath": lambda value, jsonpath: len(find(value, jsonpath)) > 0,
    "json_pointers": lambda value, jsonpath: [pointer(str(found.full_path)) for found in find(value, jsonpath)],
    "str_format": str.format,
}


def environment(dialect, whitespace):
    env = SandboxedEnvironment(
        extensions=[Base64, RaiseError],
        undefined=jinja2.StrictUndefined,
        **(EXTRA if dialect == "extra" else {}),
        **whitespace,
    )
    env.filters.update(FILTERS)
    return env


def render(text, dialect, whitespace, variables):
    def nested(text):
        return environment("plain", {}).from_string(text).render(variables)

    def vault(p, k, v=None, allow_not_found=False):
        path, key = nested(p), nested(k)
        if v and not isinstance(v, int):
            v = nested(v)
        if "missing" in path:
            if allow_not_found:
                return None
            raise Exception("not found")
        return f"<{path}#{key}@{v}>" if v else f"<{path}#{key}>"

    def texts(*args):
        assert all(isinstance(arg, str) for arg in args)
        return True

    def region(r):
        return f"@{r}" if r else ""

    variables.update(
        vault=vault,
        github=lambda u, p, r, v=None: f"file {nested(u)} {nested(p)} {nested(r)}\n",
        query=lambda query, **kw: texts(query) and [{"path": query, "given": json.dumps(kw, sort_keys=True)}, {"path": "b", "given": ""}],
        url=lambda url: texts(url) and "https" in url,
        s3=lambda account_name, bucket_name, path, region_name=None: texts(account_name, bucket_name, path, region_name or "") and f"{account_name}/{bucket_name}/{path}{region(region_name)}",
        s3_ls=lambda account_name, bucket_name, path, region_name=None: texts(account_name, bucket_name, path, region_name or "") and [f"{path}/1", f"{path}/2{region(region_name)}"],
        urlescape=lambda u, s="/", e=None: parse.quote(u, safe=s, encoding=e),
        urlunescape=lambda u, e=None: parse.unquote(u, encoding=e or "utf-8"),
        hash_list=hash_list,
        flatten_dict=flatten,
        yesterday=lambda: "2024-02-28",
        sloth_alerts=lambda *args: "groups: []",
    )
    return environment(dialect, whitespace).from_string(text).render(variables)


def too_long(*_):
    raise TimeoutError


# a template may loop forever, which ours may not
signal.signal(signal.SIGALRM, too_long)

for line in sys.stdin:
    case = json.loads(line)
    signal.alarm(10)
    try:
        rendered = render(case["template"], case["dialect"], case["whitespace"], case["variables"])
        answer = {"text": rendered}
        rendered.encode()
    except RecursionError:
        answer = {"error": "too deep"}
    except Exception as error:  # noqa: BLE001
        answer = {"error": repr(type(error))}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
