import org.apache.kafka.common.record.internal.Record;

/** What a workload does with each record. */
interface Visitor {
    void record(Record record);

    /** The result as the fields of a JSON object. */
    String json();
}
