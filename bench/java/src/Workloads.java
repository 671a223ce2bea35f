import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Set;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileLogInputStream;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;
import org.apache.kafka.common.message.AbortedTxn;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/** The ways in which Kafka reads a segment. CRCs are checked in all of them but {@link Headers}. */
final class Workloads {
    private Workloads() {
    }

    interface Workload {
        void run(Visitor visitor) throws IOException;
    }

    static Workload open(String name, Path file) throws IOException {
        switch (name) {
            case "file":
                return new FromFile(file);
            case "memory":
                return new FromMemory(file);
            case "committed":
                return new Committed(file);
            case "headers":
                return new Headers(file);
            default:
                throw new IllegalArgumentException("no such workload: " + name);
        }
    }

    private static void visit(RecordBatch batch, BufferSupplier buffers, Visitor visitor) {
        try (CloseableIterator<Record> records = batch.streamingIterator(buffers)) {
            while (records.hasNext())
                visitor.record(records.next());
        }
    }

    /** FileRecords, one read of the channel per batch, as in the broker and its tools. */
    static final class FromFile implements Workload {
        private final FileRecords file;
        private final BufferSupplier buffers = BufferSupplier.create();

        FromFile(Path path) throws IOException {
            file = FileRecords.open(path.toFile(), false);
        }

        @Override
        public void run(Visitor visitor) {
            for (FileLogInputStream.FileChannelRecordBatch batch : file.batches()) {
                batch.ensureValid();
                if (!batch.isControlBatch())
                    visit(batch, buffers, visitor);
            }
        }
    }

    /** MemoryRecords over a buffer on the heap, as a consumer reads a fetch response. */
    static final class FromMemory implements Workload {
        private final ByteBuffer bytes;
        private final BufferSupplier buffers = BufferSupplier.create();

        FromMemory(Path path) throws IOException {
            bytes = load(path);
        }

        @Override
        public void run(Visitor visitor) {
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
                batch.ensureValid();
                if (!batch.isControlBatch())
                    visit(batch, buffers, visitor);
            }
        }
    }

    /** The consumer's read_committed filter (CompletedFetch) over MemoryRecords and the .txnindex. */
    static final class Committed implements Workload {
        private final ByteBuffer bytes;
        private final List<AbortedTxn> aborted;
        private final BufferSupplier buffers = BufferSupplier.create();

        Committed(Path path) throws IOException {
            bytes = load(path);
            File index = new File(path.toString().replaceAll("\\.log$", ".txnindex"));
            aborted = index.exists() ? new TransactionIndex(0, index).allAbortedTxns() : List.of();
        }

        @Override
        public void run(Visitor visitor) {
            Comparator<AbortedTxn> order = Comparator.comparingLong(AbortedTxn::firstOffset);
            PriorityQueue<AbortedTxn> coming = new PriorityQueue<>(order);
            coming.addAll(aborted);
            Set<Long> producers = new HashSet<>();
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
                batch.ensureValid();
                while (!coming.isEmpty() && coming.peek().firstOffset() <= batch.lastOffset())
                    producers.add(coming.poll().producerId());
                if (batch.isControlBatch()) {
                    if (isAbort(batch))
                        producers.remove(batch.producerId());
                } else if (!batch.isTransactional() || !producers.contains(batch.producerId())) {
                    visit(batch, buffers, visitor);
                }
            }
        }

        private static boolean isAbort(RecordBatch batch) {
            Iterator<Record> records = batch.iterator();
            return records.hasNext()
                && ControlRecordType.parse(records.next().key()) == ControlRecordType.ABORT;
        }
    }

    /** Batch headers only, from the file. The visitor is not called; the totals are computed here. */
    static final class Headers implements Workload {
        private final FileRecords file;
        long batches;
        long sum;

        Headers(Path path) throws IOException {
            file = FileRecords.open(path.toFile(), false);
        }

        @Override
        public void run(Visitor visitor) {
            for (FileLogInputStream.FileChannelRecordBatch batch : file.batches()) {
                batches++;
                sum += batch.baseOffset() + batch.lastOffset() + batch.sizeInBytes() + batch.producerId()
                    + batch.maxTimestamp();
            }
        }
    }

    private static ByteBuffer load(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path)) {
            ByteBuffer bytes = ByteBuffer.allocate((int) channel.size());
            while (bytes.hasRemaining() && channel.read(bytes) >= 0) {
                // until the file is read
            }
            return bytes.flip();
        }
    }
}
