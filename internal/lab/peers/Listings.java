import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * Small locks with mistakes from the course's listings: those mistakes that need Java itself, with its watchers,
 * threads and exceptions. Each lock is our own code, and correct except for what its comment says. docs/mistakes.md
 * explains the mistakes.
 *
 * Arguments: the server, the lock's directory, and the kind of lock. Each line of the input is the name of a thread,
 * and what this thread does: lock, unlock, relative, stays, watches, reads or root; "interrupt" interrupts it. All threads use
 * one lock object.
 */
public class Listings {
    interface Lock {
        void lock() throws Exception;

        void unlock() throws Exception;
    }

    static ZooKeeper zk;
    static String directory;

    /** W27: a watcher that ignores the type takes an event of the session for the deletion of the znode. */
    static class AnyEvent implements Lock {
        String znode;

        public void lock() throws Exception {
            znode = join();
            String before = before(znode);
            while (before != null) {
                CountDownLatch woken = new CountDownLatch(1);
                if (zk.exists(before, event -> hear(event, woken)) != null) {
                    woken.await();
                }
                before = next();
            }
        }

        void hear(WatchedEvent event, CountDownLatch woken) {
            say("the watcher hears " + event.getState() + ", " + event.getType());
            woken.countDown(); // the mistake
        }

        String next() throws Exception {
            return null; // also W8: a client that was woken believes that it holds the lock
        }

        public void unlock() throws Exception {
            zk.delete(znode, -1);
        }
    }

    /** The same without W27: only the deletion of the znode ends the wait. W8 remains: a crash deletes it, as well. */
    static class OnlyDeletion extends AnyEvent {
        @Override
        void hear(WatchedEvent event, CountDownLatch woken) {
            say("the watcher hears " + event.getState() + ", " + event.getType());
            if (event.getType() == EventType.NodeDeleted) {
                woken.countDown();
            }
        }
    }

    /**
     * One watcher hears all of the object's watches, and looks at no path. A lock() that is interrupted deletes its znode,
     * and its watch stays. Also W8: a client that was woken believes that it holds the lock.
     */
    static class AnyPath implements Lock {
        volatile CountDownLatch woken;
        String znode;

        public void lock() throws Exception {
            znode = join();
            String before = before(znode);
            woken = new CountDownLatch(1);
            if (before != null && zk.exists(before, this::hear) != null) {
                try {
                    woken.await();
                } catch (InterruptedException e) {
                    unlock();
                    throw e;
                }
            }
        }

        void hear(WatchedEvent event) {
            say("the watcher hears " + event.getType() + ": " + event.getPath());
            if (event.getType() == EventType.NodeDeleted) { // the mistake: of which znode?
                woken.countDown();
            }
        }

        public void unlock() throws Exception {
            zk.delete(znode, -1);
        }
    }

    /** W28, one way: the znode belongs to the object (W6), so all its threads have the same place in the queue. */
    static class OneZnode implements Lock {
        String znode;

        OneZnode() throws Exception {
            try {
                znode = join();
            } catch (KeeperException e) {
                say("the constructor prints " + e.code());
            }
        }

        public void lock() throws Exception {
            String before = before(znode);
            while (before != null) {
                CountDownLatch gone = new CountDownLatch(1);
                if (zk.exists(before, event -> gone.countDown()) != null) {
                    gone.await();
                }
                before = before(znode);
            }
        }

        public void unlock() throws Exception {
            try {
                zk.delete(znode, 0); // another mistake: it is deleted only if its data was never set
            } catch (KeeperException e) {
                say("unlock prints " + e.code());
            }
        }
    }

    /** W28, the other way: each lock() writes its znode into the same field, even if the thread then has to wait. */
    static class OneField implements Lock {
        volatile String znode;

        public void lock() throws Exception {
            znode = join(); // the mistake: this may overwrite the holder's znode
            String mine = znode;
            String before = before(mine);
            while (before != null) {
                CountDownLatch gone = new CountDownLatch(1);
                if (zk.exists(before, event -> gone.countDown()) != null) {
                    gone.await();
                }
                before = before(mine);
            }
        }

        public void unlock() throws Exception {
            say("unlock deletes " + znode);
            zk.delete(znode, -1);
        }
    }

    /** A count in each lock and each thread: W10 mended. A thread whose count is not 0 gets the lock without a request. */
    static class Counts extends OneField {
        final ThreadLocal<Integer> count = ThreadLocal.withInitial(() -> 0);

        @Override
        public void lock() throws Exception {
            if (count.get() == 0) {
                super.lock();
            }
            count.set(count.get() + 1); // the mistake: the session may have ended, and the thread may have another task
            say("its count is " + count.get());
        }

        @Override
        public void unlock() throws Exception {
            count.set(count.get() - 1);
            if (count.get() == 0) {
                super.unlock();
            }
        }
    }

    /** unlock() also closes the session: after that, no object that shares the session can lock. */
    static class Closes extends OneField {
        @Override
        public void unlock() throws Exception {
            super.unlock();
            zk.close();
        }
    }

    /**
     * One directory has the queues of several locks, and a lock's name stands before "_lock_" in its znodes' names. It
     * refuses a name with "_lock_", and not one that ends in "_lock": order_lock_lock_0000000000 is cut to order.
     */
    static class Named implements Lock {
        final String name;
        String znode;

        Named(String name) {
            this.name = name;
        }

        public void lock() throws Exception {
            if (name.contains("_lock_")) {
                throw new IllegalArgumentException(name);
            }
            znode = zk.create(directory + "/" + name + "_lock_", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE,
                    CreateMode.EPHEMERAL_SEQUENTIAL);
            List<String> queue = new ArrayList<>();
            for (String child : zk.getChildren(directory, false)) {
                if (child.split("_lock_")[0].equals(name)) { // the mistake
                    queue.add(child);
                }
            }
            Collections.sort(queue);
            say("the queue of " + name + ": " + queue);
            String first = directory + "/" + queue.get(0);
            if (!first.equals(znode)) {
                throw new IllegalStateException("it does not wait here");
            }
        }

        public void unlock() throws Exception {
            zk.delete(znode, -1);
        }
    }

    /** Every method prints its exceptions, and goes on: the constructor too. */
    static class Prints implements Lock {
        String znode, before;

        Prints() {
            try {
                root();
            } catch (Exception e) {
                prints(e);
            }
        }

        public void lock() {
            say("lock returns " + (isFirst() || waits()));
        }

        boolean isFirst() {
            try {
                znode = join();
                before = before(znode);
                return before == null;
            } catch (Exception e) {
                return prints(e);
            }
        }

        boolean waits() {
            try {
                CountDownLatch gone = new CountDownLatch(1);
                String path = before == null ? directory + "/null" : before; // what the listing puts together
                return zk.exists(path, event -> gone.countDown()) == null || gone.await(30, TimeUnit.SECONDS);
            } catch (Exception e) {
                return prints(e);
            }
        }

        public void unlock() {
            try {
                if (zk.exists(znode, false) != null) {
                    zk.delete(znode, -1);
                }
            } catch (Exception e) {
                prints(e);
            }
        }

        boolean prints(Exception e) {
            say("printed: " + (e instanceof KeeperException k ? k.code() : e.getClass().getSimpleName()));
            return false;
        }
    }

    /** The same, with a client that may have no connection yet. It says when its thread waits for an answer. */
    static class PrintsAtOnce extends Prints {
        @Override
        public void lock() {
            saysThatItWaits();
            super.lock();
        }
    }

    /** W15: the watcher takes a lock that the waiting thread holds, and not the one of the condition that it signals. */
    static class Wakes implements Lock {
        final ReentrantLock local = new ReentrantLock(), ofWatchers = new ReentrantLock();
        final Condition woken = ofWatchers.newCondition();
        String znode;

        public void lock() throws Exception {
            local.lock();
            ofWatchers.lock();
            try {
                znode = join();
                for (String before = before(znode); before != null; before = before(znode)) {
                    if (zk.exists(before, this::hear) != null) {
                        woken.await(); // gives back ofWatchers, and no other lock
                    }
                }
            } catch (InterruptedException e) {
                unlock();
                throw e;
            } finally {
                ofWatchers.unlock();
            }
        }

        void hear(WatchedEvent event) {
            say("the watcher hears " + event.getType());
            local.lock(); // the mistake
            try {
                woken.signalAll();
            } catch (IllegalMonitorStateException e) {
                say("signalAll throws IllegalMonitorStateException");
            } finally {
                local.unlock();
            }
        }

        public void unlock() throws Exception {
            zk.delete(znode, -1);
            local.unlock();
        }
    }

    /** ZooKeeper's own recipe, no listing: nileader links to it. Its lock() does not wait. */
    static class Recipe implements Lock {
        final WriteLock recipe = new WriteLock(zk, directory, null);

        public void lock() throws Exception {
            say("lock returns " + recipe.lock());
        }

        public void unlock() {
            recipe.unlock();
        }
    }

    static String join() throws Exception {
        return zk.create(directory + "/lock-", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
    }

    /** The path of the znode right before the given one, or null. */
    static String before(String znode) throws Exception {
        String name = znode.substring(directory.length() + 1);
        List<String> names = zk.getChildren(directory, false);
        Collections.sort(names); // all have the same prefix
        int place = names.indexOf(name);
        return place == 0 ? null : directory + "/" + names.get(place - 1);
    }

    /** Checks that the directory does not exist, and then creates it. Two threads may both find that it is missing. */
    static void root() throws Exception {
        if (zk.exists(directory, false) == null) {
            zk.create(directory, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }
    }

    /** Sets one watch that stays, then the directory's data three times, and waits for three notifications. */
    static void stays() throws Exception {
        CountDownLatch told = new CountDownLatch(3);
        zk.addWatch(directory, event -> {
            say("the watcher hears " + event.getType());
            told.countDown();
        }, AddWatchMode.PERSISTENT);
        for (int i = 0; i < 3; i++) {
            zk.setData(directory, new byte[0], -1);
        }
        told.await();
    }

    /** Says so when the thread that calls this begins to wait: for the answer to its next request. */
    static void saysThatItWaits() {
        Thread caller = Thread.currentThread();
        new Thread(() -> {
            while (caller.getState() != Thread.State.WAITING) {
                Thread.yield();
            }
            say("the thread waits for an answer");
        }).start();
    }

    static synchronized void say(String line) {
        System.out.println(line);
    }

    public static void main(String[] args) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        zk = new ZooKeeper(args[0], 30000, event -> {
            if (args[2].equals("default watcher")) {
                say("the constructor's watcher hears " + event.getState() + ", " + event.getType());
            }
            connected.countDown();
        });
        directory = args[1];
        if (args[2].equals("prints at once")) {
            say("the client is " + zk.getState());
            saysThatItWaits();
        } else {
            connected.await();
        }
        Lock lock = switch (args[2]) {
            case "any event" -> new AnyEvent();
            case "only deletion" -> new OnlyDeletion();
            case "any path" -> new AnyPath();
            case "one znode" -> new OneZnode();
            case "closes" -> new Closes();
            case "counts" -> new Counts();
            case "prints" -> new Prints();
            case "prints at once" -> new PrintsAtOnce();
            case "wakes" -> new Wakes();
            case "recipe" -> new Recipe();
            case "order", "order_lock" -> new Named(args[2]);
            default -> new OneField();
        };
        say("ready");
        Map<String, ExecutorService> threads = new TreeMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String command = line;
            String thread = line.split(" ")[0];
            if (command.endsWith(" interrupt")) {
                threads.remove(thread).shutdownNow();
                continue;
            }
            threads.computeIfAbsent(thread, name -> Executors.newSingleThreadExecutor()).submit(() -> {
                try {
                    switch (command.split(" ")[1]) {
                        case "lock" -> lock.lock();
                        case "unlock" -> lock.unlock();
                        case "stays" -> stays();
                        case "reads" -> zk.getData(directory, true, null);
                        case "watches" -> zk.getData(directory, event -> say("another watcher hears " + event.getType()),
                                null);
                        case "relative" -> zk.create("_locknode_/guid-lock-", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE,
                                CreateMode.EPHEMERAL_SEQUENTIAL); // as nileader writes it
                        default -> root();
                    }
                    say(command + ": done");
                } catch (Exception e) {
                    say(command + ": " + (e instanceof KeeperException k ? k.code() : e.getClass().getSimpleName()));
                }
            });
        }
        System.exit(0); // the end of the input: the parent has ended
    }
}
