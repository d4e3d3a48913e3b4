"""Clients of kazoo's Lock. Each line of the input is a command: see package peers. To check
the lock, a holder creates and deletes a znode, the room, which must not exist yet.

Arguments: the servers, the lock's path, the room's path, the number of clients, each with a
session of its own, and the kind of their locks.
"""
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


class QueueLock(Lock):
    """A Lock whose znodes are named like those of step 5, zk.Lock and Curator."""

    _NODE_NAME = "-lock-"


KINDS = {
    "own names": lambda client: Lock(client, path),
    "own names, waits for both": lambda client: Lock(client, path, extra_lock_patterns=["-lock-"]),
    "our names, waits for both": lambda client: QueueLock(client, path, extra_lock_patterns=["-lock-"]),
}


def connect():
    client = KazooClient(hosts=servers, timeout=5)
    client.start()
    return client, KINDS[kind](client)


def run(seconds):
    """Lets each client take turns for some seconds, at least one, and prints each turn: the
    client, its begin and its end."""
    turns = []
    begin = time.monotonic()

    def takes_turns(i, lock):
        asked = 0.0
        while not asked or asked < seconds:
            lock.acquire()
            lock.release()
            done = time.monotonic() - begin
            turns.append((i, asked, done))
            asked = done

    threads = [threading.Thread(target=takes_turns, args=[i, lock]) for i, (_, lock) in enumerate(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, asked, done in turns:
        print("turn:", i, int(asked * 1e6), int(done * 1e6))


servers, path, room, contenders, kind = sys.argv[1:]
clients = [connect() for _ in range(int(contenders))]
client, lock = clients[0]
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "lock":
        lock.acquire()
    elif words[0] == "unlock":
        lock.release()
    elif words[0] == "turns":
        for _ in range(int(words[1])):
            lock.acquire()
            client.create(room, ephemeral=True)  # fails if it exists
            client.delete(room)
            lock.release()
    elif words[0] == "run":
        run(int(words[1]) / 1000)
    else:
        raise ValueError(line)
    print(line.strip() + ": done", flush=True)
for client, _ in clients:
    client.stop()
