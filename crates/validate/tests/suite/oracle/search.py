"""Prints for each pattern in which of the texts Python finds it, or null if it is not a pattern.

Input: the texts, then one pattern per line. A search is aborted after two seconds, or by an internal error of `re`; the
results so far are printed.
"""

import json
import re
import signal
import sys


def give_up(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, give_up)
texts = json.loads(sys.stdin.readline())
for line in sys.stdin:
    try:
        pattern = re.compile(json.loads(line))
    except (re.error, OverflowError, ValueError, RecursionError):
        print("null", flush=True)
        continue
    found = []
    try:
        signal.alarm(2)
        for text in texts:
            found.append(pattern.search(text) is not None)
    except (TimeoutError, SystemError):
        # CPython reports a bug of its own for some patterns: "The span of capturing group is wrong".
        pass
    signal.alarm(0)
    print(json.dumps(found), flush=True)
