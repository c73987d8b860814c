package bench;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** Prints when the restore of each store begins and ends, in the words of tests/benchmarks/restore/restoring.py. */
final class RestoreTimes implements StateRestoreListener {
    @Override
    public void onRestoreStart(TopicPartition partition, String store, long startOffset, long endOffset) {
        print("restore-start", partition, endOffset - startOffset);
    }

    @Override
    public void onBatchRestored(TopicPartition partition, String store, long endOffset, long records) {}

    @Override
    public void onRestoreEnd(TopicPartition partition, String store, long records) {
        print("restore-end", partition, records);
    }

    private static void print(String what, TopicPartition partition, long records) {
        System.out.println(what + " " + partition.partition() + " " + records + " " + System.currentTimeMillis());
    }
}
