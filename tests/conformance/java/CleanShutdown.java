import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;

/** What Kafka reads from the marker of a clean stop in each of the directories. */
final class CleanShutdown {
    public static void main(String[] directories) throws Exception {
        for (String directory : directories) {
            CleanShutdownFileHandler marker = new CleanShutdownFileHandler(directory);
            System.out.println(marker.exists() + " " + marker.read().orElse(-1));
        }
    }
}
