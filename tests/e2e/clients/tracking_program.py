"""A program that reports events until it is killed. Usage: URL KEY WEBSITE OUTBOX NAME.

A line on standard output is the number of an event for which `track` has returned.
"""

import os
import sys
import threading
import time

from headrace_client import Headrace

THREADS = 2


def report(client: Headrace, name: str) -> None:
    number = 0
    while True:
        number += 1
        client.track("tick", {"n": f"{name}-{number}"})
        os.write(sys.stdout.fileno(), f"{name}-{number}\n".encode())
        time.sleep(0.001)


def main() -> None:
    url, key, website, outbox, name = sys.argv[1:]
    client = Headrace(url, key, outbox=outbox, website_id=website, linger_s=0.01)
    threads = [
        threading.Thread(target=report, args=(client, f"{name}-{number}"))
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
