package bench;

import static org.apache.kafka.common.serialization.Serdes.Long;
import static org.apache.kafka.common.serialization.Serdes.String;

import bench.Shapes.Customer;
import bench.Shapes.Event;
import bench.Shapes.Order;
import bench.Shapes.Sale;
import bench.Shapes.Visit;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The jobs, step by step what jobs.py does. */
final class Jobs {
    private static final Duration WINDOW = Duration.ofSeconds(60);
    private static final Duration GRACE = Duration.ofSeconds(10);

    static StreamsBuilder build(String job, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (job) {
            case "stateless" -> stateless(builder, output);
            case "wordcount" -> wordCount(builder, output);
            case "windows" -> windows(builder, output);
            case "join" -> join(builder, output);
            case "orders" -> orders(builder, output);
            case "balances" -> balances(builder, output);
            default -> throw new IllegalArgumentException("no job " + job);
        }
        return builder;
    }

    private static void stateless(StreamsBuilder builder, String output) {
        builder.stream("bench-events", Consumed.with(String(), new JsonSerde<>(Event.class)))
            .filter((user, event) -> !event.kind().equals("heartbeat"))
            .mapValues(event ->
                new Visit(event.id(), event.user(), event.page(), event.country(), event.duration_ms() / 1000))
            .to(output, Produced.with(String(), new JsonSerde<>(Visit.class)));
    }

    private static void wordCount(StreamsBuilder builder, String output) {
        builder.stream("bench-lines", Consumed.with(String(), String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(String(), String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts")
                .withKeySerde(String()).withValueSerde(Long()))
            .toStream()
            .to(output, Produced.with(String(), Long()));
    }

    private static void windows(StreamsBuilder builder, String output) {
        builder.stream("bench-amounts", Consumed.with(String(), Long()))
            .groupByKey(Grouped.with(String(), Long()))
            .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
            .reduce(Long::sum, Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("sums")
                .withKeySerde(String()).withValueSerde(Long())
                // The inputs' timestamps are fixed: no broker may delete them for their age.
                .withLoggingEnabled(Map.of("retention.ms", "-1")))
            .toStream()
            .to(output, Produced.with(
                WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), Long()));
    }

    private static void join(StreamsBuilder builder, String output) {
        Serde<Customer> customer = new JsonSerde<>(Customer.class);
        Serde<Order> order = new JsonSerde<>(Order.class);
        KTable<String, Customer> customers = builder.table(
            "bench-customers",
            Consumed.with(String(), customer),
            Materialized.<String, Customer, KeyValueStore<Bytes, byte[]>>as("customers")
                .withKeySerde(String()).withValueSerde(customer));
        builder.stream("bench-orders", Consumed.with(String(), order))
            .join(
                customers,
                (key, left, right) ->
                    new Sale(left.id(), key, right.city(), right.tier(), left.quantity() * left.cents()),
                Joined.with(String(), order, customer))
            .to(output, Produced.with(String(), new JsonSerde<>(Sale.class)));
    }

    private static void orders(StreamsBuilder builder, String output) {
        Duration window = Duration.ofMinutes(5);
        builder.stream("bench-purchases", Consumed.with(String(), String()))
            .selectKey((order, purchase) -> purchase.split(" ")[0])
            .repartition(Repartitioned.<String, String>as("by-customer").withKeySerde(String()).withValueSerde(String()))
            .groupBy((customer, purchase) -> purchase.split(" ")[1], Grouped.with(String(), String()))
            .windowedBy(TimeWindows.ofSizeAndGrace(window, Duration.ofMinutes(1)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("sold")
                .withKeySerde(String()).withValueSerde(Long())
                .withLoggingEnabled(Map.of("retention.ms", "-1")))
            .toStream()
            .to(output, Produced.with(
                WindowedSerdes.timeWindowedSerdeFrom(String.class, window.toMillis()), Long()));
    }

    private static void balances(StreamsBuilder builder, String output) {
        builder.stream("bench-deposits", Consumed.with(String(), Long()))
            .groupByKey(Grouped.with(String(), Long()))
            .reduce(Long::sum, Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("balances")
                .withKeySerde(String()).withValueSerde(Long()))
            .toStream()
            .to(output, Produced.with(String(), Long()));
    }

    private Jobs() {}
}
