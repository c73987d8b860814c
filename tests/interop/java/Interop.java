import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KafkaStreams.State;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.WindowedSerializer;
import org.apache.kafka.streams.kstream.internals.WindowedStreamPartitioner;
import org.apache.kafka.streams.processor.internals.ProcessorMetadata;
import org.apache.kafka.streams.processor.internals.TopicPartitionMetadata;

/** Reads commands, one JSON object a line, and answers each with one: Kafka's own clients, as the tests want them. */
public final class Interop {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final String bootstrapServers;
    private final Map<String, RunningApp> apps = new HashMap<>();
    private final Map<String, PlainMember> members = new HashMap<>();

    private Interop(String bootstrapServers) {
        this.bootstrapServers = bootstrapServers;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Interop interop = new Interop(arguments[0]);
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            Object answer;
            try {
                answer = interop.answer(JSON.readTree(line));
            } catch (Exception error) {
                answer = Map.of("error", error.toString());
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        interop.stopAll();
    }

    private Object answer(JsonNode command) throws Exception {
        return switch (command.get("do").textValue()) {
            case "write" -> write(command);
            case "read" -> read(command);
            case "encode" -> encode(command);
            case "decode" -> decode(command);
            case "committed" -> committed(command);
            case "start" -> start(command);
            case "state" -> apps.get(command.get("id").textValue()).state();
            case "stop" -> apps.remove(command.get("id").textValue()).stop();
            case "join" -> join(command);
            case "assigned" -> members.get(command.get("group").textValue()).assigned();
            case "stop-all" -> stopAll();
            case "leave" -> members.remove(command.get("group").textValue()).leave();
            default -> throw new IllegalArgumentException("no command: " + command.get("do"));
        };
    }

    /** How many applications and members were still there. */
    private int stopAll() throws InterruptedException {
        int stopped = apps.size() + members.size();
        for (RunningApp app : apps.values()) {
            app.stop();
        }
        for (PlainMember member : members.values()) {
            member.leave();
        }
        apps.clear();
        members.clear();
        return stopped;
    }

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrapServers);
        return properties;
    }

    // Records

    /** The partition of each record: the producer's choice, or for windowed keys that of Kafka Streams. */
    @SuppressWarnings("unchecked")
    private List<Integer> write(JsonNode command) throws Exception {
        String topic = command.get("topic").textValue();
        String keyType = command.get("key").textValue();
        String valueType = command.get("value").textValue();
        Serializer<Object> keys = (Serializer<Object>) Values.serde(keyType).serializer();
        Serializer<Object> values = (Serializer<Object>) Values.serde(valueType).serializer();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<Object, Object> producer = new KafkaProducer<>(properties(), keys, values)) {
            int partitions = producer.partitionsFor(topic).size();
            for (JsonNode record : command.get("records")) {
                Object key = Values.parse(keyType, record.get(0));
                Object value = Values.parse(valueType, record.get(1));
                Integer partition = key instanceof Windowed<?> windowed
                    ? windowedPartition(topic, keys, windowed, partitions) : null;
                long timestamp = record.get(2).longValue();
                sent.add(producer.send(new ProducerRecord<>(topic, partition, timestamp, key, value)));
            }
        }
        List<Integer> chosen = new ArrayList<>();
        for (Future<RecordMetadata> record : sent) {
            chosen.add(record.get().partition());
        }
        return chosen;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Integer windowedPartition(String topic, Serializer<?> keys, Windowed<?> key, int partitions) {
        WindowedStreamPartitioner partitioner = new WindowedStreamPartitioner((WindowedSerializer<?>) keys);
        java.util.Optional<java.util.Set<Integer>> chosen = partitioner.partitions(topic, key, null, partitions);
        return chosen.orElseThrow().iterator().next();
    }

    /** All records of a topic as [partition, key, value, timestamp]. */
    private List<Object> read(JsonNode command) {
        String keyType = command.get("key").textValue();
        String valueType = command.get("value").textValue();
        Deserializer<?> keys = Values.serde(keyType).deserializer();
        Deserializer<?> values = Values.serde(valueType).deserializer();
        List<Object> records = new ArrayList<>();
        try (KafkaConsumer<?, ?> consumer = new KafkaConsumer<>(properties(), keys, values)) {
            List<TopicPartition> partitions = consumer.partitionsFor(command.get("topic").textValue()).stream()
                .map(info -> new TopicPartition(info.topic(), info.partition()))
                .toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                for (ConsumerRecord<?, ?> record : consumer.poll(Duration.ofMillis(100))) {
                    records.add(Arrays.asList(
                        record.partition(),
                        Values.show(keyType, record.key()),
                        Values.show(valueType, record.value()),
                        record.timestamp()));
                }
            }
        }
        return records;
    }

    // Offset metadata

    private static Object encode(JsonNode command) {
        Map<String, Long> entries = new LinkedHashMap<>();
        command.get("entries").properties().forEach(e -> entries.put(e.getKey(), e.getValue().longValue()));
        long time = command.get("time").longValue();
        return new TopicPartitionMetadata(time, new ProcessorMetadata(entries)).encode();
    }

    /** Offset and metadata by topic-partition, as Java's client reads them. */
    private Object committed(JsonNode command) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        try (Admin admin = Admin.create(properties())) {
            admin.listConsumerGroupOffsets(command.get("group").textValue()).partitionsToOffsetAndMetadata().get()
                .forEach((partition, at) -> found.put(partition.toString(), List.of(at.offset(), at.metadata())));
        }
        return found;
    }

    /** Partition time, number of entries, and the values of those that are asked for. */
    private static Object decode(JsonNode command) {
        TopicPartitionMetadata metadata = TopicPartitionMetadata.decode(command.get("text").textValue());
        ProcessorMetadata entries = metadata.processorMetadata();
        Map<String, Long> values = new LinkedHashMap<>();
        command.get("names").forEach(name -> values.put(name.textValue(), entries.get(name.textValue())));
        byte[] data = entries.serialize();
        int count = data.length < Integer.BYTES ? 0 : ByteBuffer.wrap(data).getInt();
        return Map.of("time", metadata.partitionTime(), "count", count, "values", values);
    }

    // Applications

    private Object start(JsonNode command) throws InterruptedException {
        Properties properties = properties();
        String id = command.get("id").textValue();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, command.get("state_dir").textValue());
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6_000);
        properties.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 500);
        properties.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0);
        command.get("settings").properties()
            .forEach(setting -> properties.put(setting.getKey(), setting.getValue().asText()));
        RunningApp app = new RunningApp(new KafkaStreams(Apps.topology(command.get("app").textValue()), properties));
        apps.put(id, app);
        return app.start();
    }

    private static final class RunningApp {
        private final KafkaStreams streams;
        private volatile String failure = "";

        RunningApp(KafkaStreams streams) {
            this.streams = streams;
            streams.setUncaughtExceptionHandler(error -> {
                failure = error.toString();
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
        }

        Object start() throws InterruptedException {
            streams.start();
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (streams.state().isRunningOrRebalancing() && streams.state() != State.RUNNING
                && System.nanoTime() < deadline) {
                Thread.sleep(10);
            }
            return state();
        }

        Object state() {
            return Map.of("state", streams.state().toString(), "failure", failure);
        }

        Object stop() {
            CloseOptions leaving =
                CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP);
            return streams.close(leaving.withTimeout(PATIENCE));
        }
    }

    // A consumer as anybody writes it

    private Object join(JsonNode command) {
        Properties properties = properties();
        String group = command.get("group").textValue();
        properties.put("group.id", group);
        PlainMember member = new PlainMember(properties, command.get("topic").textValue());
        members.put(group, member);
        member.thread.start();
        return true;
    }

    private static final class PlainMember {
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

        Object assigned() {
            return Map.of("partitions", assigned, "failure", failure);
        }

        Object leave() throws InterruptedException {
            stopping = true;
            thread.join(PATIENCE.toMillis());
            return !thread.isAlive();
        }
    }
}
