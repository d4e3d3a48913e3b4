import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.WatcherRemoveCuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.EventType;

/**
 * Clients of one of Curator's locks. Each line of the input is a command: see package peers. To check
 * the lock, a holder creates and deletes a znode, the room, which must not exist yet. Readers share
 * the lock, so a reader only checks that the room does not exist.
 *
 * Arguments: the servers; the lock's path; its kind, as package peers names it; the room's path; and the number of
 * clients, each with a session of its own.
 */
public class Curator {
    record Client(CuratorFramework framework, InterProcessLock lock) {}

    static InterProcessReadWriteLock readWrite; // the pair to which the lock of the last client belongs

    public static void main(String[] args) throws Exception {
        String path = args[1], kind = args[2], room = args[3];
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[4]); i++) {
            CuratorFramework framework = kind.equals("impatient")
                    ? CuratorFrameworkFactory.newClient(args[0], 10000, 1000, new RetryOneTime(100))
                    : CuratorFrameworkFactory.newClient(args[0], 5000, 5000, new ExponentialBackoffRetry(100, 5));
            framework.start();
            clients.add(new Client(framework, lock(framework, kind, path)));
        }
        for (Client c : clients) {
            c.framework.blockUntilConnected();
        }
        System.out.println("ready");
        Client first = clients.get(0);
        FutureTask<Void> waiting = null;
        Thread waiter = null;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "lock" -> first.lock.acquire();
                case "unlock" -> first.lock.release();
                case "try" -> tries(first.lock, words[1]);
                case "within" -> {
                    if (!first.lock.acquire(Long.parseLong(words[1]), TimeUnit.MILLISECONDS)) {
                        throw new IllegalStateException("the time was up");
                    }
                }
                case "other" -> tries(lock(first.framework, kind, path), words[1]);
                case "write" -> tries(readWrite.writeLock(), words[1]);
                case "make" -> {
                    try {
                        lock(CuratorFrameworkFactory.newClient(args[0], new RetryOneTime(100)), kind, words[1]);
                    } catch (IllegalArgumentException e) {
                        System.out.println(e);
                    }
                }
                case "wait" -> {
                    waiting = new FutureTask<>(() -> { first.lock.acquire(); return null; });
                    waiter = new Thread(waiting);
                    waiter.start();
                }
                case "crowd" -> {
                    for (int i = 0; i < Integer.parseInt(words[1]); i++) {
                        Thread one = new Thread(() -> {
                            try {
                                first.lock.acquire();
                            } catch (Exception e) {
                                System.out.println(e);
                            }
                        });
                        one.setDaemon(true);
                        one.start();
                    }
                }
                case "exists" -> first.framework.checkExists().usingWatcher((CuratorWatcher) e ->
                        System.out.println("the watcher hears " + e.getState() + ", " + e.getType())).forPath(words[1]);
                case "interrupt" -> {
                    waiter.interrupt();
                    printError(waiting);
                }
                case "close" -> {
                    first.framework.close();
                    if (waiting != null) {
                        printError(waiting);
                    }
                }
                case "end" -> printError(waiting);
                case "create" -> first.framework.create().withMode(CreateMode.EPHEMERAL).forPath(words[1]);
                case "delete" -> first.framework.delete().forPath(words[1]);
                case "guaranteed" -> {
                    try {
                        first.framework.delete().guaranteed().forPath(words[1]);
                    } catch (KeeperException e) {
                        System.out.println(e.code());
                    }
                }
                case "unwatch" -> unwatch(first, words[1], words[2]);
                case "turns" -> {
                    for (int i = 0; i < Integer.parseInt(words[1]); i++) {
                        first.lock.acquire();
                        if (kind.equals("read")) {
                            if (first.framework.checkExists().forPath(room) != null) {
                                throw new IllegalStateException("a writer is inside");
                            }
                        } else {
                            first.framework.create().withMode(CreateMode.EPHEMERAL).forPath(room); // fails if it exists
                            first.framework.delete().forPath(room);
                        }
                        first.lock.release();
                    }
                }
                case "run" -> run(clients, Long.parseLong(words[1]) * 1_000_000);
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println(line + ": done");
        }
        for (Client c : clients) {
            c.framework.close();
        }
    }

    static InterProcessLock lock(CuratorFramework framework, String kind, String path) {
        return switch (kind) {
            case "read" -> {
                readWrite = new InterProcessReadWriteLock(framework, path);
                yield readWrite.readLock();
            }
            case "write" -> new InterProcessReadWriteLock(framework, path).writeLock();
            case "semaphore" -> new InterProcessSemaphoreMutex(framework, path);
            case "multi" -> new InterProcessMultiLock(framework, List.of(path, path + "-2"));
            case "multi, backwards" -> new InterProcessMultiLock(framework, List.of(path + "-2", path));
            default -> new InterProcessMutex(framework, path);
        };
    }

    static void tries(InterProcessLock lock, String millis) throws Exception {
        if (lock.acquire(Long.parseLong(millis), TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("the lock was free");
        }
    }

    static void printError(FutureTask<Void> waiting) throws Exception {
        try {
            waiting.get();
        } catch (ExecutionException e) {
            System.out.println(e.getCause());
        }
    }

    /** Watches a znode, and removes the watch as LockInternals.releaseLock does, until the client is told so. */
    static void unwatch(Client c, String path, String isInForeground) throws Exception {
        System.setProperty("curator-remove-watchers-in-foreground", isInForeground);
        CompletableFuture<EventType> event = new CompletableFuture<>();
        WatcherRemoveCuratorFramework framework = c.framework.newWatcherRemoveCuratorFramework();
        framework.getData().usingWatcher((CuratorWatcher) e -> event.complete(e.getType())).forPath(path);
        framework.removeWatchers();
        if (event.get() != EventType.DataWatchRemoved) {
            throw new IllegalStateException("the watcher was told of " + event.get());
        }
    }

    /** Lets each client take turns for some time, at least one, and prints each turn: client, begin and end. */
    static void run(List<Client> clients, long nanos) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(clients.size());
        List<Future<List<String>>> all = new ArrayList<>();
        long begin = System.nanoTime();
        for (Client c : clients) {
            Callable<List<String>> takesTurns = () -> {
                List<String> turns = new ArrayList<>();
                while (turns.isEmpty() || System.nanoTime() - begin < nanos) {
                    long asked = System.nanoTime() - begin;
                    c.lock.acquire();
                    c.lock.release();
                    turns.add("turn: " + clients.indexOf(c) + " " + asked / 1000 + " " + (System.nanoTime() - begin) / 1000);
                }
                return turns;
            };
            all.add(threads.submit(takesTurns));
        }
        for (Future<List<String>> turns : all) {
            turns.get().forEach(System.out::println);
        }
        threads.shutdown();
    }
}
