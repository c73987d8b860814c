import java.time.Duration;
import java.util.Arrays;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The topologies that the tests also write in Python. */
final class Apps {
    private static final Duration SIZE = Duration.ofSeconds(10);
    private static final Duration GRACE = Duration.ofSeconds(5);
    private static final Duration RETENTION = Duration.ofHours(1);

    private Apps() {
    }

    static Topology topology(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (name) {
            case "words" -> words(builder);
            case "windows" -> windows(builder, EmitStrategy.onWindowUpdate());
            case "closes" -> windows(builder, EmitStrategy.onWindowClose());
            case "shapes" -> shapes(builder);
            default -> throw new IllegalArgumentException("no application is named " + name);
        }
        return builder.build();
    }

    private static void words(StreamsBuilder builder) {
        builder.stream("lines", Consumed.with(Serdes.ByteArray(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withKeySerde(Serdes.String()))
            .toStream()
            .to("word-counts", Produced.with(Serdes.String(), Serdes.Long()));
    }

    private static void windows(StreamsBuilder builder, EmitStrategy emit) {
        builder.stream("in", Consumed.with(Serdes.String(), Serdes.Long()))
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
            .emitStrategy(emit)
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("wins").withKeySerde(Serdes.String())
                .withRetention(RETENTION))
            .toStream()
            .to("out", Produced.with(
                new WindowedSerdes.TimeWindowedSerde<>(Serdes.String(), SIZE.toMillis()), Serdes.Long()));
    }

    /** Every kind of internal topic that both languages have. */
    private static void shapes(StreamsBuilder builder) {
        KStream<String, Long> input = builder.stream("in", Consumed.with(Serdes.String(), Serdes.Long()));
        input.repartition(Repartitioned.with(Serdes.String(), Serdes.Long()).withName("five").withNumberOfPartitions(5))
            .groupByKey()
            .count(Materialized.as("by-five"));
        input.groupBy((key, value) -> key + "!", Grouped.with("by-key", Serdes.String(), Serdes.Long()))
            .reduce(Long::sum, Materialized.as("sums"));
        input.groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
            .count(Materialized.as("wins"));
        builder.table("table", Consumed.with(Serdes.String(), Serdes.Long()), Materialized.as("kept"));
    }
}
