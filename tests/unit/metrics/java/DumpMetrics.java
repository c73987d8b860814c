import java.lang.reflect.Field;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Prints every metric that an application of Kafka Streams registers, as JSON: group, name, the names of its tags, the
 * recording level and Java's description. Run by hand; see tests/unit/metrics/java_metrics.py for the command.
 */
public final class DumpMetrics {
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final List<String> TOPICS = List.of("orders", "payments", "counts", "by-value", "final", "sessions", "paid");

    private record Id(String group, String name, String tags) implements Comparable<Id> {
        @Override
        public int compareTo(Id other) {
            return (group + " " + name + " " + tags).compareTo(other.group + " " + other.name + " " + other.tags);
        }
    }

    private record Found(String level, String description) {}

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            Set<String> present = admin.listTopics().names().get();
            admin.createTopics(TOPICS.stream().filter(topic -> !present.contains(topic))
                .map(topic -> new NewTopic(topic, 1, (short) 1)).toList()).all().get();
        }
        feed(arguments[0]);
        Map<Id, Found> all = registered(arguments[0], "DEBUG");
        Map<Id, Found> atInfo = registered(arguments[0], "INFO");
        // Whatever is only registered at the level debug is of that level, whether it has a sensor or not.
        all.replaceAll((id, found) -> atInfo.containsKey(id) ? found : new Found("debug", found.description));
        print(all);
        System.exit(0);
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        var texts = Consumed.with(Serdes.String(), Serdes.String());
        var grouped = Grouped.with(Serdes.String(), Serdes.String());
        var counted = Produced.with(Serdes.String(), Serdes.Long());
        KStream<String, String> orders = builder.stream("orders", texts);
        KStream<String, String> payments = builder.stream("payments", texts);
        orders.groupByKey(grouped)
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("orders-by-key").withValueSerde(Serdes.Long()))
            .toStream().to("counts", counted);
        orders.selectKey((key, value) -> value).groupByKey(grouped).count(Named.as("by-value"), Materialized.as(Stores.inMemoryKeyValueStore("orders-by-value")))
            .toStream().to("by-value", counted);
        orders.groupByKey(grouped).windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, WINDOW)).count(Materialized.as("orders-by-window"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream((window, count) -> window.key()).to("final", counted);
        orders.groupByKey(grouped).windowedBy(SessionWindows.ofInactivityGapAndGrace(WINDOW, WINDOW)).count(Materialized.as("orders-by-session"))
            .toStream((window, count) -> window.key()).to("sessions", counted);
        orders.join(payments, (order, payment) -> order + payment, JoinWindows.ofTimeDifferenceWithNoGrace(WINDOW),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String())).to("paid", Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    private static void feed(String servers) {
        var strings = StringSerializer.class.getName();
        try (var producer = new KafkaProducer<String, String>(
                Map.of("bootstrap.servers", servers, "key.serializer", strings, "value.serializer", strings))) {
            // Older than a week, they would be deleted soon.
            long start = System.currentTimeMillis() - 100_000;
            for (int number = 0; number < 100; number++) {
                producer.send(new ProducerRecord<>("orders", 0, start + number * 1000L, "k" + number % 7, "v" + number % 3));
                producer.send(new ProducerRecord<>("payments", 0, start + number * 1000L, "k" + number % 7, "v" + number % 3));
            }
        }
    }

    private static Map<Id, Found> registered(String servers, String level) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "metrics-" + level.toLowerCase() + "-" + System.nanoTime());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        settings.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, level);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("metrics").toString());
        settings.put("auto.offset.reset", "earliest");
        try (KafkaStreams streams = new KafkaStreams(topology(), settings)) {
            streams.start();
            // What belongs to a topic appears with its first record.
            for (int second = 0; second < 120 && !hasResults(streams); second++) {
                Thread.sleep(1000);
            }
            if (!hasResults(streams)) {
                throw new IllegalStateException("no results after two minutes, state " + streams.state());
            }
            Map<MetricName, String> levels = levels(streams);
            Map<Id, Found> found = new TreeMap<>();
            for (Metric metric : streams.metrics().values()) {
                MetricName name = metric.metricName();
                String tags = new TreeSet<>(name.tags().keySet()).stream().map(tag -> '"' + tag + '"').collect(Collectors.joining(", "));
                found.put(new Id(name.group(), name.name(), tags), new Found(levels.getOrDefault(name, "info"), name.description()));
            }
            return found;
        }
    }

    private static boolean hasResults(KafkaStreams streams) {
        return streams.metrics().values().stream().filter(metric -> metric.metricName().name().equals("record-send-total"))
            .filter(metric -> "final".equals(metric.metricName().tags().get("topic")))
            .anyMatch(metric -> ((Number) metric.metricValue()).doubleValue() > 0);
    }

    /** The recording levels of what has a sensor. Java does not show them. */
    private static Map<MetricName, String> levels(KafkaStreams streams) throws Exception {
        Metrics metrics = (Metrics) hidden(KafkaStreams.class, "metrics", streams);
        Map<MetricName, String> levels = new HashMap<>();
        for (Object sensor : ((ConcurrentMap<?, ?>) hidden(Metrics.class, "sensors", metrics)).values()) {
            String level = hidden(Sensor.class, "recordingLevel", sensor).toString().toLowerCase();
            for (Object name : ((Map<?, ?>) hidden(Sensor.class, "metrics", sensor)).keySet()) {
                levels.put((MetricName) name, level);
            }
        }
        return levels;
    }

    private static Object hidden(Class<?> owner, String name, Object of) throws Exception {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    private static void print(Map<Id, Found> all) {
        System.out.println(all.entrySet().stream().map(entry -> String.format(
            "  {\"group\": %s, \"name\": %s, \"tags\": [%s], \"level\": %s, \"description\": %s}",
            text(entry.getKey().group), text(entry.getKey().name), entry.getKey().tags, text(entry.getValue().level),
            text(entry.getValue().description))).collect(Collectors.joining(",\n", "[\n", "\n]")));
    }

    private static String text(String value) {
        return '"' + value.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
