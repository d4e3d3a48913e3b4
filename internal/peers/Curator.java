import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;

/**
 * Clients of one of Curator's locks that do what the lines of their input say: see
 * package peers. To look is to go into a room that holds one: a znode that does not
 * exist yet. Readers do not look, for they share.
 *
 * Arguments: servers, the lock's path, mutex or read or write, the room's path, and
 * how many clients, each with a session of its own.
 */
public class Curator {
    record Client(CuratorFramework framework, InterProcessLock lock) {}

    /** What one client had: turns, the longest of them and all together, in nanoseconds. */
    record Share(int turns, long longest, long all) {}

    public static void main(String[] args) throws Exception {
        String path = args[1], kind = args[2], room = args[3];
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[4]); i++) {
            CuratorFramework framework = CuratorFrameworkFactory.newClient(args[0], 5000, 5000, new ExponentialBackoffRetry(100, 5));
            framework.start();
            clients.add(new Client(framework, switch (kind) {
                case "read" -> new InterProcessReadWriteLock(framework, path).readLock();
                case "write" -> new InterProcessReadWriteLock(framework, path).writeLock();
                default -> new InterProcessMutex(framework, path);
            }));
        }
        for (Client c : clients) {
            c.framework.blockUntilConnected();
        }
        System.out.println("ready");
        Client first = clients.get(0);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "lock" -> first.lock.acquire();
                case "unlock" -> first.lock.release();
                case "turns" -> {
                    for (int i = 0; i < Integer.parseInt(words[1]); i++) {
                        first.lock.acquire();
                        if (!kind.equals("read")) {
                            first.framework.create().withMode(CreateMode.EPHEMERAL).forPath(room); // fails if somebody is there
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

    /** Lets all take turns for a while, and each at least one. */
    static void run(List<Client> clients, long nanos) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(clients.size());
        List<Future<Share>> shares = new ArrayList<>();
        long begin = System.nanoTime();
        for (Client c : clients) {
            Callable<Share> takesTurns = () -> {
                int turns = 0;
                long longest = 0, all = 0;
                while (turns == 0 || System.nanoTime() - begin < nanos) {
                    long asked = System.nanoTime();
                    c.lock.acquire();
                    c.lock.release();
                    long turn = System.nanoTime() - asked;
                    turns++;
                    longest = Math.max(longest, turn);
                    all += turn;
                }
                return new Share(turns, longest, all);
            };
            shares.add(threads.submit(takesTurns));
        }
        int turns = 0;
        long longest = 0, all = 0;
        for (Future<Share> share : shares) {
            turns += share.get().turns;
            longest = Math.max(longest, share.get().longest);
            all += share.get().all;
        }
        long took = System.nanoTime() - begin;
        threads.shutdown();
        System.out.printf("run: %d %d %d %d%n", turns, took / 1000, longest / 1000, all / 1000);
    }
}
