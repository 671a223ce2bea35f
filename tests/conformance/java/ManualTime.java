import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;

/** A clock that is moved by hand, and the tasks that wait for it; all of it on one thread. */
final class ManualTime implements Time {
    private final List<Task> tasks = new ArrayList<>();
    private long nowMs;

    /** Tasks that are due run before this returns, those that repeat are run once. */
    void moveTo(long ms) {
        nowMs = ms;
        run(nowMs);
    }

    /** Everything that was put off is done now, but for what repeats. */
    void finish() {
        tasks.removeIf(each -> each.periodMs >= 0);
        run(Long.MAX_VALUE);
    }

    /** Nothing of it is ever done. */
    void forget() {
        tasks.clear();
    }

    private void run(long untilMs) {
        while (true) {
            Task next = tasks.stream().filter(each -> each.dueMs <= untilMs)
                .min(Comparator.comparingLong(each -> each.dueMs)).orElse(null);
            if (next == null)
                return;
            tasks.remove(next);
            if (next.periodMs >= 0)
                tasks.add(new Task(next.runnable, nowMs + Math.max(1, next.periodMs), next.periodMs));
            next.runnable.run();
        }
    }

    Scheduler scheduler() {
        return new Scheduler() {
            @Override
            public void startup() {
            }

            @Override
            public void shutdown() {
            }

            @Override
            public ScheduledFuture<?> schedule(String name, Runnable runnable, long delayMs, long periodMs) {
                Task task = new Task(runnable, nowMs + delayMs, periodMs);
                tasks.add(task);
                return task;
            }

            @Override
            public void resizeThreadPool(int size) {
            }
        };
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return nowMs * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        nowMs += ms;
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException();
    }

    private final class Task implements ScheduledFuture<Void> {
        private final Runnable runnable;
        private final long dueMs;
        private final long periodMs;

        Task(Runnable runnable, long dueMs, long periodMs) {
            this.runnable = runnable;
            this.dueMs = dueMs;
            this.periodMs = periodMs;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(dueMs - nowMs, TimeUnit.MILLISECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(getDelay(TimeUnit.MILLISECONDS), other.getDelay(TimeUnit.MILLISECONDS));
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            return tasks.remove(this);
        }

        @Override
        public boolean isCancelled() {
            return false;
        }

        @Override
        public boolean isDone() {
            return !tasks.contains(this);
        }

        @Override
        public Void get() {
            throw new CancellationException();
        }

        @Override
        public Void get(long timeout, TimeUnit unit) {
            throw new CancellationException();
        }
    }
}
