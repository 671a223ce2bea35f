package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.record.internal.RecordBatch;

/** In Kafka's package, for two package-private members of an entry. */
public final class DuplicateLookup {
    private DuplicateLookup() {
    }

    public static boolean isDuplicate(ProducerStateEntry entry, RecordBatch batch) {
        return entry.findDuplicateBatch(batch).isPresent();
    }

    public static int lastSequence(ProducerStateEntry entry) {
        return entry.lastSeq();
    }
}
