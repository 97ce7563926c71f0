"""The requests to the server, in order: a request may depend on the state that earlier ones left."""

import base64
import gzip
import hashlib
import json
import zlib
from urllib.parse import quote

LATEST = "0bbd731020f4a6c05d332294852f45a838d3c360be4213a80b2eb76834ea88ff"
QUERY = "{ apps_v1 { name } }"
NAMED = "query A { apps_v1 { name } } query B { teams_v1 { name } }"
WITH_VARIABLE = "query($p: String) { apps_v1(path: $p) { name } }"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


def ask(name, method, target, headers=(), body=None, **more):
    """One request. The sender adds `Host` and `Content-Length`, unless `more` overrides it."""
    request = {"method": method, "target": target, "headers": [list(header) for header in headers]}
    if isinstance(body, bytes):
        request["body_base64"] = base64.b64encode(body).decode("ascii")
    elif body is not None:
        request["body"] = body
    return {"name": name, "request": {**request, **more}}


def get(name, target, *headers, **more):
    return ask(name, "GET", target, headers, **more)


def post(name, body, *headers, **more):
    """A POST of JSON to /graphql."""
    headers = [("Content-Type", "application/json"), *headers]
    return ask(name, "POST", "/graphql", headers, body, **more)


def says(name, document, *headers, **more):
    return post(name, json.dumps(document, separators=(",", ":")), *headers, **more)


def query(**parameters):
    return "/graphql?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())


def persisted(text, version=1, digest=None):
    digest = digest or hashlib.sha256(text.encode()).hexdigest()
    return {"persistedQuery": {"version": version, "sha256Hash": digest}}


def compact(document):
    return json.dumps(document, separators=(",", ":"))


def bodies():
    text = compact({"query": QUERY})
    yield says("a query", {"query": QUERY})
    yield ask("no content type", "POST", "/graphql", [], text)
    yield ask("content type text/plain", "POST", "/graphql", [("Content-Type", "text/plain")], text)
    form = [("Content-Type", "application/x-www-form-urlencoded")]
    yield ask("content type of a form", "POST", "/graphql", form, "query=%7B__typename%7D")
    yield ask("content type graphql", "POST", "/graphql", [("Content-Type", "application/graphql")], QUERY)
    yield ask("content type with a suffix", "POST", "/graphql", [("Content-Type", "application/x+json")], text)
    yield ask("content type graphql+json", "POST", "/graphql", [("Content-Type", "application/graphql+json")], text)
    yield ask("content type in capitals", "POST", "/graphql", [("Content-Type", "Application/JSON")], text)
    yield ask("content type that is none", "POST", "/graphql", [("Content-Type", "json")], text)
    for charset in ["utf-8", "UTF-8", '"UTF-8"', "utf8", "iso-8859-1", "us-ascii", "utf-16", "nonsense"]:
        kind = [("Content-Type", f"application/json; charset={charset}")]
        yield ask(f"charset {charset}", "POST", "/graphql", kind, text)
    kind = [("Content-Type", "application/json; charset=utf-16le")]
    yield ask("charset utf-16le, and so it is", "POST", "/graphql", kind, text.encode("utf-16le"))
    yield ask("content type with another parameter", "POST", "/graphql", [("Content-Type", "application/json; a=b")], text)
    yield ask("content type with a lone semicolon", "POST", "/graphql", [("Content-Type", "application/json;")], text)
    yield ask("no body at all", "POST", "/graphql", [("Content-Type", "application/json")])
    yield post("an empty body", "")
    yield post("an empty object", "{}")
    yield post("an empty list", "[]")
    yield post("a batch", f"[{text},{text}]")
    yield post("a list of one", f"[{text}]")
    yield post("invalid JSON", '{"query":')
    yield post("JSON and more", text + "x")
    yield post("JSON after a byte order mark", "\ufeff" + text)
    yield post("JSON between blanks", f" \n{text}\n ")
    yield post("a string", '"x"')
    yield post("a number", "1")
    yield post("null", "null")
    yield post("only blanks", "  ")
    yield post("bytes that are no UTF-8", b'{"query":"{ apps_v1 { name } } #\xff"}')
    yield post("a key twice", '{"query":"{","query":"{ apps_v1 { name } }"}')
    yield says("an unknown key", {"query": QUERY, "more": 1})


def fields():
    yield says("query missing", {"variables": {}})
    yield says("query empty", {"query": ""})
    yield says("query blank", {"query": " "})
    yield says("query null", {"query": None})
    yield says("query false", {"query": False})
    yield says("query a number", {"query": 1})
    yield says("query an object", {"query": {}})
    yield says("query a document", {"query": {"kind": "Document"}})
    yield says("query a list", {"query": [QUERY]})
    yield says("variables", {"query": WITH_VARIABLE, "variables": {"p": "/apps/search.yml"}})
    yield says("variables null", {"query": QUERY, "variables": None})
    yield says("variables text of JSON", {"query": QUERY, "variables": "{}"})
    yield says("variables empty text", {"query": QUERY, "variables": ""})
    yield says("variables a list", {"query": QUERY, "variables": []})
    yield says("variables a number", {"query": QUERY, "variables": 1})
    yield says("variable of another type", {"query": WITH_VARIABLE, "variables": {"p": 1}})
    yield says("variable unknown", {"query": QUERY, "variables": {"q": 1}})
    yield says("operation", {"query": NAMED, "operationName": "B"})
    yield says("operation missing", {"query": NAMED})
    yield says("operation unknown", {"query": NAMED, "operationName": "C"})
    yield says("operation unknown, one is there", {"query": QUERY, "operationName": "C"})
    yield says("operation empty", {"query": NAMED, "operationName": ""})
    yield says("operation empty, one is there", {"query": QUERY, "operationName": ""})
    yield says("operation null", {"query": QUERY, "operationName": None})
    yield says("operation a number", {"query": QUERY, "operationName": 1})
    yield says("extensions", {"query": QUERY, "extensions": {}})
    yield says("extensions null", {"query": QUERY, "extensions": None})
    yield says("extensions a list", {"query": QUERY, "extensions": []})
    yield says("extensions a number", {"query": QUERY, "extensions": 1})
    yield says("extensions text", {"query": QUERY, "extensions": "{}"})
    yield says("syntax error", {"query": "{ apps_v1 { "})
    yield says("only a fragment", {"query": "fragment F on App_v1 { name }"})
    yield says("only a comment", {"query": "# nothing"})
    yield says("invalid query", {"query": "{ nope }"})
    yield says("a subscription", {"query": "subscription { x }"})
    yield says("a mutation", {"query": "mutation { x }"})


def sizes():
    whole = compact({"query": QUERY + " #PAD"})
    fitting = 100 * 1024 - len(whole) + len("PAD")
    yield post("a body of 100 KiB", whole, pad=fitting)
    yield post("a body of 100 KiB and a byte", whole, pad=fitting + 1)
    yield post("a body of 200 kB", whole, pad=200_000)
    text = compact({"query": QUERY}).encode()
    yield post("gzip", gzip.compress(text, mtime=0), ("Content-Encoding", "gzip"))
    yield post("gzip in capitals", gzip.compress(text, mtime=0), ("Content-Encoding", "GZIP"))
    yield post("x-gzip", gzip.compress(text, mtime=0), ("Content-Encoding", "x-gzip"))
    yield post("deflate", zlib.compress(text), ("Content-Encoding", "deflate"))
    yield post("identity", text.decode(), ("Content-Encoding", "identity"))
    yield post("zstd", text.decode(), ("Content-Encoding", "zstd"))
    yield post("unknown encoding", text.decode(), ("Content-Encoding", "rot13"))
    yield post("gzip, two times", gzip.compress(text, mtime=0), ("Content-Encoding", "gzip, gzip"))
    yield post("gzip that is none", text.decode(), ("Content-Encoding", "gzip"))
    bomb = gzip.compress(compact({"query": QUERY + " #" + "x" * 200_000}).encode(), mtime=0)
    yield post("gzip of 200 kB", bomb, ("Content-Encoding", "gzip"))
    yield post("chunked", text.decode(), ("Transfer-Encoding", "chunked"))
    yield post("a body that is announced first", text.decode(), ("Expect", "100-continue"))
    yield post("an expectation nobody knows", text.decode(), ("Expect", "something"))


def by_get():
    yield get("GET", query(query=QUERY))
    yield get("GET of a sha", f"/graphqlsha/{LATEST}" + query(query=QUERY).removeprefix("/graphql"))
    yield get("GET with a whole URL", "http://127.0.0.1" + query(query=QUERY))
    yield get("GET with plus signs", "/graphql?query=%7B+apps_v1+%7B+name+%7D+%7D")
    yield get("GET without a query", "/graphql")
    yield get("GET with a lone question mark", "/graphql?")
    yield get("GET with an empty query", "/graphql?query=")
    yield get("GET with other parameters only", "/graphql?x=1")
    yield get("GET with variables", query(query=WITH_VARIABLE, variables='{"p":"/apps/search.yml"}'))
    yield get("GET with variables that are no JSON", query(query=QUERY, variables="{"))
    yield get("GET with variables that are a list", query(query=QUERY, variables="[]"))
    yield get("GET with variables null", query(query=QUERY, variables="null"))
    yield get("GET with empty variables", query(query=QUERY, variables=""))
    yield get("GET with extensions that are no JSON", query(query=QUERY, extensions="x"))
    yield get("GET with an operation", query(query=NAMED, operationName="B"))
    yield get("GET with an unknown operation", query(query=NAMED, operationName="C"))
    yield get("GET with an empty operation", query(query=NAMED, operationName=""))
    yield get("GET with a query twice", query(query=QUERY) + "&query=x")
    yield get("GET with variables twice", query(query=QUERY) + "&variables=%7B%7D&variables=%7B%7D")
    yield get("GET with another parameter twice", query(query=QUERY) + "&x=1&x=2")
    yield get("GET with a syntax error", query(query="{"))
    yield get("GET with an invalid query", query(query="{ nope }"))
    yield get("GET with a bad percent sequence", "/graphql?query=%7Bapps_v1%7Bname%7D%7D%20%23%zz")
    yield get("GET with bytes that are no UTF-8", "/graphql?query=%7Bapps_v1%7Bname%7D%7D%20%23%ff")
    yield get("GET of a mutation", query(query="mutation { x }"))
    yield get("GET of a subscription", query(query="subscription { x }"))
    yield get("GET of one of query and mutation", query(query="query A { apps_v1 { name } } mutation B { x }", operationName="A"))
    yield get("GET with content type JSON", query(query=QUERY), ("Content-Type", "application/json"))
    yield get("GET with content type text/plain", query(query=QUERY), ("Content-Type", "text/plain"))
    yield get("GET with content type that is none", query(query=QUERY), ("Content-Type", "json"))
    yield ask("GET with a body", "GET", query(query=QUERY), [("Content-Type", "application/json")], '{"query":"{"}')
    yield ask("GET with a body that is no JSON", "GET", query(query=QUERY), [("Content-Type", "application/json")], "{")
    yield ask("POST with a query in the URL", "POST", query(query=QUERY), [("Content-Type", "application/json")], "{}")


def kept_queries():
    text, other = "{ teams_v1 { name } }", "{ clusters_v1 { name } }"
    yield says("hash unknown", {"extensions": persisted(text)})
    yield says("hash of another query", {"query": other, "extensions": persisted(text)})
    yield says("hash of another version", {"query": text, "extensions": persisted(text, version=2)})
    yield says("hash alone of another version", {"extensions": persisted(text, version=2)})
    yield says("hash of the version as text", {"query": text, "extensions": persisted(text, version="1")})
    yield says("hash still unknown", {"extensions": persisted(text)})
    yield says("hash and query", {"query": text, "extensions": persisted(text)})
    yield says("hash alone", {"extensions": persisted(text)})
    yield says("hash alone, query empty", {"query": "", "extensions": persisted(text)})
    yield says("hash alone in capitals", {"extensions": persisted(text, digest=hashlib.sha256(text.encode()).hexdigest().upper())})
    yield get("hash alone by GET", query(extensions=compact(persisted(text))))
    yield get("hash unknown by GET", query(extensions=compact(persisted(other))))
    yield get("hash of another query by GET", query(query=text, extensions=compact(persisted(other))))
    yield get("hash and query by GET", query(query=other, extensions=compact(persisted(other))))
    yield says("hash alone after GET", {"extensions": persisted(other)})
    target = "/graphqlsha/b99c88bc30254e59add5f955d67a4aeef9030b39d8d1936af177d8a30be7c000"
    kind = [("Content-Type", "application/json")]
    yield ask("hash alone at another bundle", "POST", target, kind, compact({"extensions": persisted(text)}))
    yield says("hash and a query with an error", {"query": "{ nope }", "extensions": persisted("{ nope }")})
    yield says("hash alone of the query with an error", {"extensions": persisted("{ nope }")})
    yield says("hash and a query that cannot be parsed", {"query": "{", "extensions": persisted("{")})
    yield says("hash alone of the query that cannot be parsed", {"extensions": persisted("{")})
    yield says("persistedQuery empty", {"query": text, "extensions": {"persistedQuery": {}}})
    yield says("persistedQuery null", {"query": text, "extensions": {"persistedQuery": None}})
    yield says("persistedQuery text", {"query": text, "extensions": {"persistedQuery": "x"}})
    yield says("persistedQuery without a hash", {"query": text, "extensions": {"persistedQuery": {"version": 1}}})


def accepts():
    for accept in [
        "*/*",
        "application/json",
        "application/json; charset=utf-8",
        "application/graphql-response+json",
        "application/graphql-response+json; charset=utf-8",
        "application/graphql-response+json, application/json;q=0.9",
        "application/json, application/graphql-response+json",
        "application/graphql-response+json;q=0.5, application/json",
        "application/*",
        "text/plain",
        "text/plain, */*;q=0.1",
        "application/json;q=0",
        "application/json;q=0, */*",
        "multipart/mixed",
        "nonsense",
        "",
        "text/html",
        BROWSER,
        "text/html, application/json",
        "application/json, text/html",
        "text/html;q=0.5, application/json;q=0.9",
        "text/html;q=0.9, application/json;q=0.5",
        "text/*",
    ]:
        yield says(f"POST accepts {accept}", {"query": QUERY}, ("Accept", accept))
        yield get(f"GET accepts {accept}", query(query=QUERY), ("Accept", accept))
    yield get("a page without a query", "/graphql", ("Accept", BROWSER))
    yield get("a page of a sha", f"/graphqlsha/{LATEST}", ("Accept", BROWSER))
    yield get("no page of an unknown sha", "/graphqlsha/nope", ("Accept", BROWSER))
    kind = ("Accept", "application/graphql-response+json")
    yield says("syntax error in the other media type", {"query": "{"}, kind)
    yield says("invalid query in the other media type", {"query": "{ nope }"}, kind)
    yield says("bad request in the other media type", {}, kind)
    yield says("bad request that accepts text/plain", {}, ("Accept", "text/plain"))
    yield says("syntax error that accepts text/plain", {"query": "{"}, ("Accept", "text/plain"))
    yield post("invalid JSON that accepts JSON", "{", ("Accept", "application/json"))
    yield get("no compression", query(query=QUERY), ("Accept-Encoding", "gzip, br"))


def methods():
    for method in ["PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]:
        yield ask(f"{method} /graphql", method, "/graphql")
        yield ask(f"{method} /sha256", method, "/sha256")
        yield ask(f"{method} /nope", method, "/nope")
    yield ask("HEAD with a query", "HEAD", query(query=QUERY))
    yield ask("HEAD that accepts a page", "HEAD", "/graphql", [("Accept", BROWSER)])
    yield ask("PUT with a query", "PUT", "/graphql", [("Content-Type", "application/json")], compact({"query": QUERY}))
    yield ask("PUT with invalid JSON", "PUT", "/graphql", [("Content-Type", "application/json")], "{")
    yield ask("OPTIONS before a request of another origin", "OPTIONS", "/graphql", [
        ("Origin", "http://other.example"), ("Access-Control-Request-Method", "POST"),
    ])
    yield ask("POST /sha256", "POST", "/sha256")
    yield ask("POST /sha256 with invalid JSON", "POST", "/sha256", [("Content-Type", "application/json")], "{")
    yield ask("GET /reload", "GET", "/reload")
    yield ask("HEAD /reload", "HEAD", "/reload")
    yield ask("OPTIONS /reload", "OPTIONS", "/reload")
    yield ask("POST /reload", "POST", "/reload")
    yield ask("POST /reload with invalid JSON", "POST", "/reload", [("Content-Type", "application/json")], "{")
    yield ask("HEAD /healthz", "HEAD", "/healthz")
    yield ask("HEAD /", "HEAD", "/")
    yield ask("OPTIONS /", "OPTIONS", "/")
    yield ask("OPTIONS of the server", "OPTIONS", "*")
    yield ask("a method nobody knows", "BREW", "/graphql")


def paths():
    yield get("/", "/")
    yield get("/ for a browser", "/", ("Accept", BROWSER))
    yield get("/ for JSON", "/", ("Accept", "application/json"))
    yield get("/ with a query", "/?a=1")
    for path in ["/healthz", "/sha256", "/git-commit", "/git-commit-info"]:
        yield get(path, path)
    yield get("/sha256 with a slash", "/sha256/")
    yield get("/sha256 in capitals", "/SHA256")
    yield get("/sha256 with a query", "/sha256?x=1")
    yield get("/sha256 after two slashes", "//sha256")
    yield get("/sha256 in percent sequences", "/%73ha256")
    yield get("/sha256 with a whole URL", "http://127.0.0.1/sha256")
    yield get("/git-commit of a sha", f"/git-commit/{LATEST}")
    yield get("/git-commit of a sha with a slash", f"/git-commit/{LATEST}/")
    yield get("/git-commit of a sha in capitals", f"/git-commit/{LATEST.upper()}")
    yield get("/git-commit of an unknown sha", "/git-commit/nope")
    yield get("/git-commit-info of a sha", f"/git-commit-info/{LATEST}")
    yield get("/git-commit-info of an unknown sha", "/git-commit-info/nope")
    yield get("/git-commit-info of a sha in percent sequences", "/git-commit-info/%3Cb%3E%22%26%27")
    yield get("/git-commit-info of a sha with a slash in it", "/git-commit-info/a%2Fb")
    yield get("/git-commit-info of a bad percent sequence", "/git-commit-info/%zz")
    yield get("/git-commit-info of bytes that are no UTF-8", "/git-commit-info/%ff")
    yield get("/git-commit-info with a slash", "/git-commit-info/")
    yield get("/git-commit-info and more", f"/git-commit-info/{LATEST}/x")
    for path in ["/graphql/", "/GraphQL", "/graphql/x", "//graphql", "/graphqlsha", "/graphqlsha/"]:
        yield get(path, path + query(query=QUERY).removeprefix("/graphql"))
    for path in [f"/graphqlsha/{LATEST}/", f"/graphqlsha/{LATEST}/x", f"/GRAPHQLSHA/{LATEST}", f"/graphqlsha/{LATEST.upper()}"]:
        yield get(path, path + query(query=QUERY).removeprefix("/graphql"))
    kind = [("Content-Type", "application/json")]
    yield ask("POST /graphql/", "POST", "/graphql/", kind, compact({"query": QUERY}))
    yield ask("POST of a sha", "POST", f"/graphqlsha/{LATEST}", kind, compact({"query": QUERY}))
    yield ask("POST of a sha with a query", "POST", f"/graphqlsha/{LATEST}?x=1", kind, compact({"query": QUERY}))
    yield ask("POST of an unknown sha", "POST", "/graphqlsha/nope", kind, compact({"query": QUERY}))
    yield ask("POST of an unknown sha with invalid JSON", "POST", "/graphqlsha/nope", kind, "{")
    yield get("unknown path", "/nope")
    yield get("unknown path for JSON", "/nope", ("Accept", "application/json"))
    yield get("unknown path with a query", "/nope?a=<b>&c=\"d\"&e='f'")
    yield get("unknown path with characters to escape", "/a<b>\"c'd&e`f")
    yield get("unknown path with percent sequences", "/%3Cscript%3E%20%22%26")
    yield get("unknown path with a bad percent sequence", "/%zz")
    yield get("unknown path that ends within a percent sequence", "/a%2")
    yield get("unknown path with bytes that are no UTF-8", "/%ff")
    yield get("unknown path with brackets and bars", "/a[b]|c^d{e}\\f")
    yield get("unknown path of dots", "/../a/./b")
    yield get("unknown path of slashes", "//a//b")
    yield get("unknown path as a whole URL", "http://other.example/nope")
    yield ask("unknown path, POST", "POST", "/nope")
    yield ask("unknown path, DELETE", "DELETE", "/<nope>")


def known_answers(tags):
    """`tags` are the entity tags of the responses to /sha256 and to the query by GET."""
    sha, answer = tags["/sha256"], tags["GET"]
    strong = answer.removeprefix("W/")
    target = query(query=QUERY)
    for name, value in [
        ("weak", answer),
        ("strong", strong),
        ("any", "*"),
        ("of another", 'W/"1-x"'),
        ("in a list", f'"a", {answer}, "b"'),
        ("in a list without blanks", f'"a",{answer}'),
        ("without quotes", strong.strip('"')),
        ("empty", ""),
    ]:
        yield get(f"known answer, {name}", target, ("If-None-Match", value))
    yield get("known answer, but no cache", target, ("If-None-Match", answer), ("Cache-Control", "no-cache"))
    yield get("known answer, but of no age", target, ("If-None-Match", answer), ("Cache-Control", "max-age=0"))
    yield says("known answer, POST", {"query": QUERY}, ("If-None-Match", answer))
    yield get("known answer with errors", query(query="{ nope }"), ("If-None-Match", "*"))
    yield get("known answer since a date", target, ("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"))
    yield get("known /sha256", "/sha256", ("If-None-Match", sha))
    yield ask("known /sha256, HEAD", "HEAD", "/sha256", [("If-None-Match", sha)])
    yield get("known /healthz", "/healthz", ("If-None-Match", "*"))
    yield get("known /git-commit-info", "/git-commit-info", ("If-None-Match", "*"))
    yield get("known /", "/", ("If-None-Match", "*"))
    yield get("known unknown path", "/nope", ("If-None-Match", "*"))
    yield get("known unknown sha", "/git-commit-info/nope", ("If-None-Match", "*"))
    yield get("a part of an answer", target, ("Range", "bytes=0-3"))


def connections():
    yield get("a connection to be closed", "/sha256", ("Connection", "close"))
    yield get("a connection to be kept", "/sha256", ("Connection", "keep-alive"))
    yield get("HTTP/1.0", "/sha256", version="1.0")
    yield get("HTTP/1.0, to be kept", "/sha256", ("Connection", "keep-alive"), version="1.0")
    yield get("HTTP/1.0 without a host", "/sha256", version="1.0", host=False)
    yield get("HTTP/1.1 without a host", "/sha256", host=False)
    yield get("a connection to become another", "/sha256", ("Connection", "Upgrade"), ("Upgrade", "websocket"))
    yield get("a head of 8 kB", "/sha256", ("X-Padding", "PAD"), pad=8_000)
    yield get("a head of 20 kB", "/sha256", ("X-Padding", "PAD"), pad=20_000)
    yield get("a target of 8 kB", "/sha256?PAD", pad=8_000)
    yield get("a target of 20 kB", "/sha256?PAD", pad=20_000)
    yield get("a token nobody asked for", "/sha256", ("Authorization", "Bearer x"))
    yield get("another origin", query(query=QUERY), ("Origin", "http://other.example"))


def first():
    """The requests that do not depend on earlier responses."""
    yield from bodies()
    yield from fields()
    yield from sizes()
    yield from by_get()
    yield from kept_queries()
    yield from accepts()
    yield from methods()
    yield from paths()
    yield from connections()
