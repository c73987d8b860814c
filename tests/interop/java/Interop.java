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
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
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
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.WindowedSerializer;
import org.apache.kafka.streams.kstream.internals.WindowedStreamPartitioner;
import org.apache.kafka.streams.processor.internals.ProcessorMetadata;
import org.apache.kafka.streams.processor.internals.TopicPartitionMetadata;

/** Reads commands, one JSON object a line, and answers each with one: Kafka's own clients, as the tests want them. */
public final class Interop {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(120);

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
            case "stop" -> stop(command);
            case "gates" -> gates(command);
            case "waiting" -> waiting();
            case "join" -> join(command);
            case "assigned" -> members.get(command.get("group").textValue()).assigned();
            case "stop-all" -> stopAll();
            case "leave" -> members.remove(command.get("group").textValue()).leave(PATIENCE);
            default -> throw new IllegalArgumentException("no command: " + command.get("do"));
        };
    }

    /** How many applications and members were still there. */
    private int stopAll() throws Exception {
        int stopped = apps.size() + members.size();
        ofEach(List.copyOf(apps.values()), app -> app.stop(PATIENCE, true));
        for (PlainMember member : members.values()) {
            member.leave(PATIENCE);
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

    /** Start applications, all at once; the state of each by its id. */
    private Object start(JsonNode command) throws Exception {
        List<RunningApp> started = new ArrayList<>();
        List<String> ids = new ArrayList<>();
        for (JsonNode app : command.get("apps")) {
            Gate gate = new Gate();
            String id = app.get("id").textValue();
            Properties settings = settings(app);
            RunningApp running = new RunningApp(topology(app, gate, settings), settings, gate);
            apps.put(id, running);
            started.add(running);
            ids.add(id);
        }
        List<Map<String, String>> states = ofEach(started, app -> app.start(PATIENCE));
        Map<String, Object> answer = new LinkedHashMap<>();
        for (int i = 0; i < ids.size(); i++) {
            answer.put(ids.get(i), states.get(i));
        }
        return answer;
    }

    private static Topology topology(JsonNode app, Gate gate, Properties settings) {
        String name = app.get("app").textValue();
        return app.has("run")
            ? TakenOver.topology(name, app.get("run").textValue(), gate, settings) : Apps.topology(name);
    }

    private Properties settings(JsonNode app) {
        Properties properties = properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, app.get("id").textValue());
        properties.put(StreamsConfig.STATE_DIR_CONFIG, app.get("state_dir").textValue());
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, SmallStores.class);
        properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6_000);
        properties.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 500);
        properties.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0);
        properties.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0);
        app.get("settings").properties().forEach(setting -> properties.put(setting.getKey(), setting.getValue().asText()));
        return properties;
    }

    /** Whether each was stopped in time. What waits at a gate stops there. */
    private Object stop(JsonNode command) throws Exception {
        List<RunningApp> stopped = new ArrayList<>();
        command.get("ids").forEach(id -> stopped.add(apps.remove(id.textValue())));
        boolean leaving = command.get("leaving").booleanValue();
        return ofEach(stopped, app -> app.stop(PATIENCE, leaving));
    }

    private Object gates(JsonNode command) {
        boolean closed = command.get("closed").booleanValue();
        command.get("ids").forEach(id -> apps.get(id.textValue()).gate.close(closed));
        return true;
    }

    /** The applications that are held up. */
    private Object waiting() {
        return apps.entrySet().stream().filter(app -> app.getValue().gate.waiting() > 0).map(Map.Entry::getKey).toList();
    }

    private interface Step<T, R> {
        R of(T subject) throws Exception;
    }

    /** What a step that takes long gives for each subject; at once, not in turn. */
    private static <T, R> List<R> ofEach(List<T> subjects, Step<T, R> step) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(Math.max(1, subjects.size()));
        try {
            List<Future<R>> begun = new ArrayList<>();
            for (T subject : subjects) {
                begun.add(pool.submit(() -> step.of(subject)));
            }
            List<R> results = new ArrayList<>();
            for (Future<R> future : begun) {
                results.add(future.get());
            }
            return results;
        } finally {
            pool.shutdownNow();
        }
    }

    private Object join(JsonNode command) {
        Properties properties = properties();
        String group = command.get("group").textValue();
        properties.put("group.id", group);
        PlainMember member = new PlainMember(properties, command.get("topic").textValue());
        members.put(group, member);
        member.start();
        return true;
    }
}
