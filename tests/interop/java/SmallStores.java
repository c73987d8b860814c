import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/** Many applications run in one process: none needs the memory that Kafka Streams gives to each store. */
public final class SmallStores implements RocksDBConfigSetter {
    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        options.setWriteBufferSize(1 << 18);
        options.setMaxBackgroundJobs(1);
    }

    @Override
    public void close(String storeName, Options options) {
        // The options are Kafka Streams' own to close.
    }
}
