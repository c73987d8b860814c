import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KafkaStreams.State;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** An application, from its start to its end. */
final class RunningApp {
    final Gate gate;
    private final KafkaStreams streams;
    private volatile String failure = "";

    RunningApp(Topology topology, Properties properties, Gate gate) {
        this.gate = gate;
        streams = new KafkaStreams(topology, properties);
        streams.setUncaughtExceptionHandler(error -> {
            failure = error.toString();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
    }

    /** Returns once it runs, or will not. */
    Map<String, String> start(Duration patience) throws InterruptedException {
        streams.start();
        long deadline = System.nanoTime() + patience.toNanos();
        while (streams.state().isRunningOrRebalancing() && streams.state() != State.RUNNING
            && System.nanoTime() < deadline) {
            Thread.sleep(10);
        }
        return state();
    }

    Map<String, String> state() {
        return Map.of("state", streams.state().toString(), "failure", failure);
    }

    /** Without leaving it stays a member until its session is over: Java's default. */
    boolean stop(Duration patience, boolean leaving) {
        GroupMembershipOperation then =
            leaving ? GroupMembershipOperation.LEAVE_GROUP : GroupMembershipOperation.REMAIN_IN_GROUP;
        return streams.close(CloseOptions.groupMembershipOperation(then).withTimeout(patience));
    }
}
