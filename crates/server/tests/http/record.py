"""Sends requests to the peer of the benchmarks over raw sockets and records its responses in `recorded.json`.

    python3 record.py FOLDER

FOLDER has the packages of the peer in its `node_modules`: `apollo` in the cache folder of `cargo xtask`.
"""

import base64
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import request_list

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[3]
VECTORS = TOP / "crates/testkit/vectors"
PEER = TOP / "benches/benches/server/peer.mjs"


def request_bytes(request):
    """The bytes of a request: its head and its body."""
    pad = "x" * request.get("pad", 0)
    body = base64.b64decode(request.get("body_base64", "")) or request.get("body", "").replace("PAD", pad).encode()
    lines = [f"{request['method']} {request['target'].replace('PAD', pad)} HTTP/{request.get('version', '1.1')}"]
    if request.get("host", True):
        lines.append("Host: 127.0.0.1")
    lines += [f"{name}: {value.replace('PAD', pad)}" for name, value in request["headers"]]
    if ["Transfer-Encoding", "chunked"] in request["headers"]:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    elif "body" in request or "body_base64" in request:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode(), body


def read_answer(stream, method):
    """One response, with the interim responses before it, such as `100 Continue`."""
    between = []
    while True:
        status = stream.readline().decode("latin-1").split(" ", 2)[1]
        headers = {}
        while (line := stream.readline().decode("latin-1").rstrip("\r\n")) != "":
            name, value = line.split(": ", 1) if ": " in line else (line.rstrip(":"), "")
            assert name.lower() not in headers, line
            headers[name.lower()] = value
        if not status.startswith("1"):
            break
        between.append(int(status))
    if method == "HEAD" or status == "304":
        body = b""
    elif headers.get("transfer-encoding") == "chunked":
        body = b""
        while (size := int(stream.readline(), 16)) > 0:
            body += stream.read(size + 2)[:-2]
        stream.readline()
    elif "content-length" in headers:
        body = stream.read(int(headers["content-length"]))
    else:
        body = stream.read()
    return int(status), headers, body.decode(), between


def answer_of(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        head, body = request_bytes(request)
        stream = connection.makefile("rb")
        connection.sendall(head)
        try:
            connection.sendall(body)
        except ConnectionError:
            pass  # the server responded before it had read everything
        status, headers, text, between = read_answer(stream, request["method"])
    headers.pop("date", None)
    answer = {"status": status, "content_type": headers.get("content-type"), "headers": headers, "body": text}
    if "apollographql" in text:  # its own page, which differs each time
        answer["body"] = None
        del headers["etag"]
    if between:
        answer["between"] = between
    return answer


def record(port):
    records = []

    def send_all(requests):
        for one in requests:
            records.append({**one, "answer": answer_of(port, one["request"])})

    send_all(request_list.first())
    tags = {one["name"]: one["answer"]["headers"].get("etag") for one in records}
    send_all(request_list.known_answers(tags))
    names = [one["name"] for one in records]
    assert len(set(names)) == len(names), "a name occurs twice"
    return records


def main():
    (folder,) = sys.argv[1:]
    command = ["node", str(PEER), "0", str(VECTORS / "bundle2.json"), str(VECTORS / "bundle.json")]
    environment = {**os.environ, "NODE_ENV": "production"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as peer:
        try:
            records = record(int(peer.stdout.readline()))
        finally:
            peer.terminate()
    text = ",\n".join(json.dumps(one, ensure_ascii=False) for one in records)
    (HERE / "recorded.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
