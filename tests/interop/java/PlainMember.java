import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.Deserializer;

/** A consumer as anybody writes it. */
final class PlainMember {
    private final Thread thread;
    private volatile boolean stopping;
    private volatile int assigned;
    private volatile String failure = "";

    PlainMember(Properties properties, String topic) {
        thread = new Thread(() -> consume(properties, topic), "plain-member");
    }

    private void consume(Properties properties, String topic) {
        Deserializer<?> bytes = Values.serde("bytearray").deserializer();
        try (KafkaConsumer<?, ?> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            while (!stopping) {
                consumer.poll(Duration.ofMillis(100));
                assigned = consumer.assignment().size();
            }
        } catch (RuntimeException error) {
            failure = error.toString();
        }
    }

    void start() {
        thread.start();
    }

    Map<String, Object> assigned() {
        return Map.of("partitions", assigned, "failure", failure);
    }

    boolean leave(Duration patience) throws InterruptedException {
        stopping = true;
        thread.join(patience.toMillis());
        return !thread.isAlive();
    }
}
