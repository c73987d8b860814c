import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.streams.processor.internals.StreamThread;

/** Where a stream thread is held up in the middle of its work, until it is let through or told to stop. */
final class Gate {
    private final AtomicInteger waiting = new AtomicInteger();
    private volatile boolean closed;

    void close(boolean now) {
        closed = now;
    }

    /** How many threads are held up. */
    int waiting() {
        return waiting.get();
    }

    /** Called by stream threads, for each record. */
    void pass() {
        if (!closed) {
            return;
        }
        StreamThread thread = (StreamThread) Thread.currentThread();
        waiting.incrementAndGet();
        try {
            while (closed && thread.isRunning()) {
                Thread.sleep(2);
            }
        } catch (InterruptedException interrupted) {
            thread.interrupt();
        } finally {
            waiting.decrementAndGet();
        }
    }
}
