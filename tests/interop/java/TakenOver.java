import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** The applications that go from one language to the other: ../taken_over.py has the same. */
final class TakenOver {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Long> NUMBER = Serdes.Long();
    private static final TimeWindows TUMBLING =
        TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(5));
    private static final TimeWindows HOPPING = TUMBLING.advanceBy(Duration.ofSeconds(5));
    private static final SessionWindows SESSIONS =
        SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(4), Duration.ofSeconds(5));
    private static final JoinWindows MEETING =
        JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(3), Duration.ofSeconds(5));

    private final StreamsBuilder builder = new StreamsBuilder();
    private final String run;
    private final Gate gate;

    private TakenOver(String run, Gate gate) {
        this.run = run;
        this.gate = gate;
    }

    /** One application, or several in one, by their names with commas. What it writes goes to the topics of its run. */
    static Topology topology(String names, String run, Gate gate, Properties settings) {
        TakenOver made = new TakenOver(run, gate);
        for (String name : names.split(",")) {
            made.add(name);
        }
        return made.builder.build(settings);
    }

    private void add(String name) {
        switch (name) {
            case "counts" -> counts();
            case "windows", "exact-windows" -> write(windowed(name, HOPPING, EmitStrategy.onWindowUpdate()).toStream(), name, ofWindows());
            case "closes" -> write(windowed(name, TUMBLING, EmitStrategy.onWindowClose()).toStream(), name, ofWindows());
            case "suppressed" -> suppressed(name);
            case "sessions" -> sessions();
            case "tables", "optimized" -> tables(name);
            case "foreign", "foreign-left" -> foreign(name);
            case "meetings" -> meetings();
            case "regrouped" -> regrouped();
            default -> throw new IllegalArgumentException("no application is named " + name);
        }
    }

    private <K, V> void write(KStream<K, V> results, String name, Produced<K, V> as) {
        results.peek((key, value) -> gate.pass()).to(name + "-" + run, as);
    }

    private static Produced<Windowed<String>, Long> ofWindows() {
        long sizeMs = TUMBLING.size();
        return Produced.with(new WindowedSerdes.TimeWindowedSerde<>(TEXT, sizeMs), NUMBER);
    }

    private KStream<String, Long> numbers(String topic) {
        return builder.stream(topic, Consumed.with(TEXT, NUMBER));
    }

    private KTable<String, String> table(String name, String side) {
        return builder.table(name + "-" + side, Consumed.with(TEXT, TEXT), Materialized.as(name + "-" + side + "-rows"));
    }

    private void counts() {
        KTable<String, Long> counts = builder.stream("counts-in", Consumed.with(TEXT, TEXT))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("by-word", TEXT, TEXT))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counted").withKeySerde(TEXT));
        write(counts.toStream(), "counts", Produced.with(TEXT, NUMBER));
    }

    private KTable<Windowed<String>, Long> windowed(String name, TimeWindows windows, EmitStrategy emit) {
        KGroupedStream<String, Long> grouped = numbers(name + "-in").groupByKey(Grouped.with(TEXT, NUMBER));
        return grouped.windowedBy(windows).emitStrategy(emit)
            .reduce(Long::sum, Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(name + "-sums")
                .withRetention(Duration.ofHours(1)));
    }

    private void suppressed(String name) {
        KTable<Windowed<String>, Long> last = windowed(name, TUMBLING, EmitStrategy.onWindowUpdate())
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("final"));
        write(last.toStream(), name, ofWindows());
    }

    private void sessions() {
        KTable<Windowed<String>, Long> sums = numbers("sessions-in")
            .groupByKey(Grouped.with(TEXT, NUMBER))
            .windowedBy(SESSIONS)
            .aggregate(() -> 0L, (key, value, sum) -> sum + value, (key, one, two) -> one + two,
                Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("session-sums").withValueSerde(NUMBER));
        write(sums.toStream(), "sessions", Produced.with(new WindowedSerdes.SessionWindowedSerde<>(TEXT), NUMBER));
    }

    private void tables(String name) {
        KTable<String, String> both = table(name, "left").outerJoin(
            table(name, "right"),
            (left, right) -> left + "+" + right,
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name + "-joined-rows").withValueSerde(TEXT));
        write(both.toStream(), name, Produced.with(TEXT, TEXT));
    }

    /** A left row's value is "foreign key|text". */
    private void foreign(String name) {
        KTable<String, String> left = table(name, "left");
        KTable<String, String> right = table(name, "right");
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> rows =
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name + "-joined-rows").withValueSerde(TEXT);
        TableJoined<String, String> named = TableJoined.as(name + "-join");
        KTable<String, String> joined = name.equals("foreign")
            ? left.join(right, row -> row.split("\\|")[0], (one, two) -> one + "+" + two, named, rows)
            : left.leftJoin(right, row -> row.split("\\|")[0], (one, two) -> one + "+" + two, named, rows);
        write(joined.toStream(), name, Produced.with(TEXT, TEXT));
    }

    private void meetings() {
        KStream<String, String> met = numbers("meetings-left").outerJoin(
            numbers("meetings-right"),
            (left, right) -> left + "+" + right,
            MEETING,
            StreamJoined.with(TEXT, NUMBER, NUMBER).withName("meeting").withStoreName("meeting"));
        write(met, "meetings", Produced.with(TEXT, TEXT));
    }

    /** A row's value is "group|number". */
    private void regrouped() {
        KTable<String, Long> sums = table("regrouped", "in")
            .groupBy(
                (key, row) -> KeyValue.pair(row.split("\\|")[0], Long.parseLong(row.split("\\|")[1])),
                Grouped.with("by-group", TEXT, NUMBER))
            .aggregate(() -> 0L, (key, value, sum) -> sum + value, (key, value, sum) -> sum - value,
                Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("group-sums").withValueSerde(NUMBER));
        write(sums.toStream(), "regrouped", Produced.with(TEXT, NUMBER));
    }
}
